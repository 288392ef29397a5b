"""Checks of the pretend device itself: tensors, autograd, streams, generators, memory, pinning, saving.

Run as ``python device.py DEVICE CHECK``: imports the device's package, does that check, prints OK last.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

D = sys.argv[1]
PLUGIN = importlib.import_module(f"torch_{D}")
V = getattr(torch, D)


def raises(call: Callable[[], Any], kind: type[BaseException], text: str) -> BaseException:
    """The error of type ``kind`` that ``call`` raises; AssertionError if it raises none or ``text`` is not in it."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"nothing raised, expected {kind.__name__}: {text}")


def factories_views_and_outputs() -> None:
    for made in (
        torch.arange(5, device=D),
        torch.randperm(5, device=D),
        torch.eye(3, device=D),
        torch.tensor([1, 2], device=D),
        torch.full((2,), 3.0, device=D),
        torch.zeros(2, device=D).new_ones(3),
        torch.fft.fftfreq(4, device=D),
        torch.asarray([1], device=D),
        torch.hann_window(4, device=D),
        torch.ones(2).to(D),
        getattr(torch.ones(2), D)(),
    ):
        assert made.device == torch.device(D + ":0") and D + ":0" in repr(made)
    x = torch.arange(24.0, device=D).reshape(2, 3, 4)
    for view in (
        x.transpose(0, 2),
        x[1:],
        x.unfold(2, 2, 1),
        x.expand(5, 2, 3, 4),
        x.view(-1),
        x.diagonal(),
        x.detach(),
        x.split(1)[0],
    ):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.diagonal().zero_()
    x[x > 20] = -1
    assert x.cpu()[0, 0, 0] == 0 and x.min().item() == -1
    out = torch.empty(0, device=D)
    assert torch.add(torch.ones(3, device=D), 1, out=out) is out and out.tolist() == [2.0] * 3
    assert out.resize_(4, 4).untyped_storage().nbytes() == 64
    out.set_(torch.zeros(3, device=D))
    assert out.tolist() == [0.0] * 3
    c = torch.fft.fft(torch.randn(4, device=D))
    assert torch.equal(c.conj().cpu(), c.cpu().conj().resolve_conj())


def autograd_attention_and_dropout() -> None:
    q = torch.randn(2, 4, 8, 16, requires_grad=True)
    p = q.detach().to(D).requires_grad_()
    for t in (q, p):
        F.scaled_dot_product_attention(t, t, t, is_causal=True).square().sum().backward()
    torch.testing.assert_close(p.grad.cpu(), q.grad, rtol=1e-4, atol=1e-4)
    layer, x = nn.TransformerEncoderLayer(16, 4, batch_first=True, dropout=0.0), torch.randn(2, 5, 16)
    there = layer(x)
    torch.testing.assert_close(layer.to(D)(x.to(D)).cpu(), there, rtol=1e-4, atol=1e-4)
    host_state, ones = torch.get_rng_state(), torch.ones(1000, device=D)
    V.manual_seed(3)
    first = F.dropout(ones, 0.5)
    assert 300 < (first == 0).sum().item() < 700 and not torch.equal(F.dropout(ones, 0.5), first)
    V.manual_seed(3)
    assert torch.equal(F.dropout(ones, 0.5), first) and torch.equal(torch.get_rng_state(), host_state)
    x = torch.ones(3, device=D, requires_grad=True)
    y = x.exp()
    y.add_(1)
    raises(y.sum().backward, RuntimeError, "modified by an inplace operation")


def mixed_devices() -> None:
    x = torch.ones(3, device=D)
    for wrong in (
        lambda: x + torch.ones(3),
        lambda: torch.mm(torch.ones(2, 2, device=D), torch.ones(2, 2)),
        lambda: x + torch.ones(3, device=D + ":1"),
        lambda: torch.cat([x, torch.ones(2)]),
    ):
        raises(wrong, RuntimeError, "same device")
    assert (x + torch.tensor(2.0)).tolist() == [3.0] * 3 and x[torch.tensor([0, 1])].shape == (2,)
    assert torch.ones(2, device=D + ":1").to(D + ":0").device.index == 0


def mixed_precision() -> None:
    model = nn.Linear(4, 4).to(D)
    x, image = torch.randn(2, 4, device=D), torch.ones(1, 1, 3, 3, device=D)
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast(D, dtype=dtype):
            y = model(x)
            assert y.dtype == (x @ x.t()).dtype == F.conv2d(image, image).dtype == dtype
            assert F.softmax(y, -1).dtype == F.mse_loss(y, x).dtype == torch.float32
    scaler, optimizer = torch.amp.GradScaler(D, init_scale=2.0**30), torch.optim.AdamW(model.parameters())
    before = [p.detach().clone() for p in model.parameters()]
    scaler.scale(model(x).sum() * 1e38).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**29 and all(map(torch.equal, before, model.parameters()))
    optimizer.zero_grad()
    scaler.scale(model(x).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before[0], model.weight)


def streams_events_and_generators() -> None:
    stream, start, end = V.Stream(), V.Event(enable_timing=True), V.Event(enable_timing=True)
    with V.stream(stream):
        assert V.current_stream() == stream
        start.record()
        time.sleep(0.02)
        end.record()
    assert V.current_stream() == V.default_stream() != stream and isinstance(stream, torch.Stream)
    end.synchronize()
    assert start.elapsed_time(end) >= 20 and end.query() and stream.record_event().query()
    stream.wait_event(start)
    stream.wait_stream(V.current_stream())
    torch.ones(2, device=D).record_stream(stream)
    torch.manual_seed(5)
    assert V.initial_seed() == 5
    states = V.get_rng_state_all()
    assert [s.numel() for s in states] == [16, 16]
    drawn = torch.randn(3, device=D)
    assert not torch.equal(drawn, torch.randn(3, device=D))
    V.set_rng_state_all(states)
    assert torch.equal(drawn, torch.randn(3, device=D))
    generator = torch.Generator(device=D).manual_seed(7)
    state, first = generator.get_state(), torch.rand(3, device=D, generator=generator)
    generator.set_state(state)
    assert (
        torch.equal(first, torch.rand(3, device=D, generator=generator)) and V.default_generators[1].device.index == 1
    )


def memory() -> None:
    base = V.memory_allocated()
    x = torch.empty(1 << 20, device=D)
    assert (
        V.memory_allocated() - base == 4 << 20
        and V.max_memory_allocated() >= 4 << 20
        and V.memory_reserved() == 20 << 20
    )
    stats = V.memory_stats()
    assert (
        stats["allocation.all.current"] == 1
        and stats["segment.large_pool.current"] == 1
        and stats["inactive_split.all.current"] == 1
    )
    del x
    assert V.memory_allocated() == base and V.memory_reserved() == 20 << 20
    V.empty_cache()
    assert V.memory_reserved() == 0 and V.mem_get_info() == (256 << 20, 256 << 20)
    for wants in (
        lambda: torch.empty(1 << 28, device=D),
        lambda: torch.ones(30000, 1, device=D) @ torch.ones(1, 30000, device=D),
        lambda: torch.ones(10000, 1, device=D).expand(-1, 30000).contiguous(),
    ):
        assert len(raises(wants, torch.OutOfMemoryError, "out of memory").args) == 1
    assert V.memory_stats()["num_ooms"] == 3 and V.memory_allocated() == base
    V.set_per_process_memory_fraction(0.5)
    print(raises(lambda: torch.empty(50 << 20, device=D), torch.OutOfMemoryError, "out of memory"))


def pinned_memory_saving_and_pickling() -> None:
    pinned = torch.ones(3).pin_memory()
    assert (
        pinned.is_pinned()
        and pinned[1:].is_pinned()
        and not torch.ones(3).is_pinned()
        and torch.empty(2, pin_memory=True).is_pinned()
    )
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.ones(6, 2)), batch_size=2, pin_memory=True
    )
    assert all(batch[0].is_pinned() for batch in loader)
    model = nn.Linear(2, 2).to(D)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "x": torch.ones(2, device=D + ":1")}, file)
    for where, device in ((None, D + ":1"), ("cpu", "cpu"), (D + ":0", D + ":0")):
        file.seek(0)
        assert torch.load(file, map_location=where)["x"].device == torch.device(device)
    again = pickle.loads(pickle.dumps(torch.arange(3, device=D)))
    assert (
        again.device.type == D
        and again.tolist() == [0, 1, 2]
        and torch.ones(2, device=D).type() == f"torch.{D}.FloatTensor"
    )
    assert isinstance(torch.ones(2, device=D), V.FloatTensor) and V.LongTensor([1, 2]).dtype == torch.int64
    assert (
        V.FloatTensor(2, 3).shape == V.FloatTensor(torch.Size([2, 3])).shape == (2, 3) and V.FloatTensor().numel() == 0
    )


def graph_replay() -> None:
    x, y = torch.ones(4, device=D), torch.zeros(4, device=D)
    graph = getattr(V, f"{D.upper()}Graph")()
    with V.graph(graph):
        y.copy_(x * 2)
        z = y.sum()
    x.fill_(5)
    graph.replay()
    assert y.tolist() == [10.0] * 4 and z.item() == 40 and not V.is_current_stream_capturing()


globals()[sys.argv[2]]()
print("OK")
