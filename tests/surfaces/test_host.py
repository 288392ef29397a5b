"""The CPU as back end: what a CUDA script does for a card's sake is harmless, and a second card is not there."""

from __future__ import annotations

import pytest

PINNED = """
import warnings
warnings.simplefilter("error")
import torch
from torch.utils.data import DataLoader, TensorDataset
x = torch.ones(2, requires_grad=True)
for pinned in (x.pin_memory(), x.pin_memory("cuda"), x.pin_memory(device="cuda:0")):
    assert torch.equal(pinned, x) and pinned.data_ptr() != x.data_ptr() and pinned.requires_grad
    assert not pinned.is_pinned() and not pinned.is_pinned("cuda") and pinned.device.type == "cpu"
for made in (torch.empty(2, pin_memory=True), torch.zeros(2, 3, pin_memory=True, device="cpu"),
             torch.tensor([1.0], pin_memory=True), x.new_empty(2, pin_memory=True), torch.ones(2, pin_memory=False),
             torch.empty_like(x, pin_memory=True), torch.randn(3, pin_memory=True)):
    assert made.device.type == "cpu" and not made.is_pinned()
torch.manual_seed(3)
plain = torch.randn(3)
torch.manual_seed(3)
assert torch.equal(torch.randn(3, pin_memory=True), plain)
try:
    torch.empty(2, 3, dtype="float", pin_memory=True)
except TypeError:
    pass
else:
    raise AssertionError("a bad argument")
for workers in (0, 1):
    loader = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=2, pin_memory=True, num_workers=workers)
    assert sum(batch.cuda(non_blocking=True).sum().item() for (batch,) in loader) == 15 and loader.pin_memory is True
"""

STREAMS = """
import torch
for stream in (torch.Stream(device="cuda"), torch.Stream("cuda:0"), torch.Stream("flagos"), torch.Stream(0),
               torch.Stream(device=torch.device("cuda")), torch.Stream(), torch.Stream("cuda", 1),
               torch.Stream(device="cuda", priority=-1)):
    assert isinstance(stream, torch.Stream) and stream.query() and stream.device.type == "cpu"
    stream.synchronize()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
assert torch.Stream("cuda", 1).priority == 1 and torch.Stream(device="cuda", priority=-1).priority == -1
assert torch.Stream("cuda") != torch.Stream("cuda")
start, end = torch.Event(device="cuda", enable_timing=True), torch.Event("flagos", enable_timing=True)
start.record(); end.record(stream)
assert start.elapsed_time(end) >= 0 and torch.Event().query() and isinstance(end, torch.Event)
assert isinstance(torch.cuda.Stream(), torch.Stream) and isinstance(torch.cuda.Event(), torch.Event)
assert type(torch.Stream(0, 0, 0)) is torch.Stream and type(torch.Event("cpu")) is torch.Event
for bad in ("xpu", "nonsense"):
    try:
        torch.Stream(device=bad)
    except RuntimeError:
        pass
    else:
        raise AssertionError(bad)
import flagos_shim
flagos_shim.deactivate()
try:
    torch.Stream(device="cuda")
except RuntimeError as error:
    assert "not linked with support for cuda" in str(error)
else:
    raise AssertionError("still routed")
"""

SECOND_CARD = """
import torch
d = torch.device("cuda:1")
assert d == torch.device("cuda", 1) == torch.device("flagos:1") and d.index == 1 and d.type == "cuda"
assert torch.device("cuda:0") == torch.device("cuda", 0) == torch.device(0) == torch.ones(1, device="cuda:0").device
x, model = torch.ones(1), torch.nn.Linear(1, 1)
for use in (
    lambda: torch.zeros(1, device="cuda:1"), lambda: torch.zeros(1, device=d), lambda: torch.tensor([1], device="cuda:1"),
    lambda: torch.zeros(1, device=1), lambda: x.to("cuda:1"), lambda: x.to(d), lambda: x.cuda(1), lambda: x.cuda("cuda:1"),
    lambda: x.to(1), lambda: model.to(d), lambda: model.cuda(1), lambda: model.to("flagos:1"),
    lambda: torch.zeros_like(x, device=d), lambda: x.new_zeros(1, device="cuda:1"),
    lambda: torch.cuda.set_device(1), lambda: torch.cuda.set_device(d), lambda: torch.cuda.synchronize("cuda:1"),
    lambda: torch.nn.Linear(1, 1, device="cuda:1"),
):
    try:
        use()
    except torch.AcceleratorError as error:
        assert str(error).startswith("CUDA error: invalid device ordinal") and "there are 1" in str(error), error
    else:
        raise AssertionError(use)
torch.cuda.init()
torch.cuda._lazy_init()
torch.cuda.synchronize()
assert torch.cuda.is_initialized() and torch.ones(2, device="cuda").sum() == 2
with torch.device("cuda:0"):
    assert torch.ones(1).device.type == "cpu"
"""


@pytest.mark.parametrize("code", [PINNED, STREAMS, SECOND_CARD], ids=["pinning", "streams", "a second card"])
def test_host(code, run_isolated):
    run = run_isolated(code, backend="cpu").ok()
    assert run.stderr == ""
