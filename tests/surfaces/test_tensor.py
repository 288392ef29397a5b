"""Tensors, modules, storages, generators: every way to name a device, and no device where none is named."""

from __future__ import annotations

import pytest

MOVES = """
import torch
from torch.nn.utils.rnn import pack_sequence
x, here = torch.arange(3.0), torch.zeros(1, device="cuda").device
made = [
    x.to("cuda"), x.to("cuda:0"), x.to("flagos"), x.to(0), x.to(device="cuda"), x.to("cuda", torch.float16, True),
    x.to(device=0, dtype=torch.float16), x.to(torch.device("cuda")), x.to(torch.zeros(1, device="cuda")),
    x.cuda(), x.cuda(0), x.cuda("cuda:0"), x.cuda(torch.device("cuda", 0)),
    x.cuda(device=0, non_blocking=True), x.cuda(memory_format=torch.contiguous_format), x.flagos(), x.flagos(0),
    x.new_zeros(2, device="cuda"), x.new_tensor([1.0], device=0), x.new_empty_strided((2,), (1,), device="cuda"),
    torch.nn.Linear(2, 2).cuda().weight, torch.nn.Linear(2, 2).to("cuda").weight, torch.nn.Linear(2, 2).to(0).weight,
    torch.nn.Linear(2, 2).to(device="cuda", dtype=torch.float16).weight, torch.nn.Linear(2, 2).flagos().weight,
    torch.nn.Linear(2, 2, device="meta").to_empty(device="cuda").weight, pack_sequence([x]).to("cuda").data,
    pack_sequence([x]).cuda().data, torch.tensor([], device="cuda").set_(x.untyped_storage().cuda()),
    torch.asarray([1.0], device="cuda"), torch.fft.fftfreq(3, device="cuda"),
    torch.empty_permuted((2, 2), (0, 1), device="cuda"), torch.normal(0.0, 1.0, (2,), device="cuda"),
    torch.randn(2, device="cuda", generator=torch.Generator("cuda").manual_seed(3)),
]
if here.type not in ("mlu", "musa"):  # the pretend device has neither sparse nor nested tensors
    made += [
        torch.nested.nested_tensor([x], device="cuda"), torch.nested.as_nested_tensor([x], None, "cuda"),
        torch.sparse_coo_tensor([[0]], [1.0], (2,), device="cuda"),
    ]
assert [t.device for t in made] == [here] * len(made), [t.device for t in made]
assert torch.UntypedStorage(4, device="cuda").device == here and torch.UntypedStorage(4).device.type == "cpu"
assert torch.TypedStorage(4, dtype=torch.float32, device="cuda").device == here
assert x.to(torch.float64).dtype is torch.float64 and x.to() is x and x.to("cpu") is x and x.cpu() is x
assert x.to(copy=True) is not x and torch.zeros(2).device == torch.zeros(2, device=None).device == torch.device("cpu")
refused = [lambda: x.cuda("meta")]
if here.type != "cpu":
    refused += [lambda: x.cuda("cpu"), lambda: x.cuda(torch.device("cpu"))]
for wrong in refused:
    try:
        wrong()
    except ValueError as error:
        assert "must be cuda device" in str(error)
    else:
        assert False, wrong
options = {"device": "cuda"}
torch.zeros(2, **options), x.to(**options)
assert options == {"device": "cuda"}
assert torch.Generator("cuda").device.type == here.type and torch.Generator().device.type == "cpu"
assert torch.Generator(device=torch.device("cuda", 0)).device == here
assert isinstance(torch.Generator("cuda"), torch.Generator) and type(torch.Generator("cuda")) is torch.Generator
"""

FLAGOS = """
import torch, flagos_shim
a, b = torch.ones(2, device="cuda"), torch.ones(2, device="flagos")
assert a.device == b.device and (a + b).tolist() == [2.0, 2.0]
info = torch.flagos_info()
assert info["device_type"] == torch.device("cuda").type and info["device_count"] == torch.cuda.device_count()
assert info["adapter_version"] == flagos_shim.__version__ and info["torch_version"] == str(torch.__version__)
assert a.flagos(backend=info["backend"]).device == a.device
other = "mlu" if info["backend"] != "mlu" else "ascend"
for call in (lambda: a.flagos(backend=other), lambda: torch.nn.Linear(1, 1).flagos(backend=other)):
    try:
        call()
    except RuntimeError as error:
        assert str(error).startswith("mixed backend operation not allowed") and ".to('flagos')" in str(error)
        assert repr(info["backend"]) in str(error) and repr(other) in str(error)
    else:
        assert False
assert torch.flagos is torch.cuda
import torch.flagos
from torch.flagos import current_device
taken = torch.flagos_info
flagos_shim.deactivate()
assert not hasattr(torch, "flagos") and not hasattr(torch.Tensor, "flagos") and taken() == {}
"""


def test_every_way_to_name_a_device(backend, run_isolated):
    run_isolated(MOVES, backend=backend).ok()


def test_the_names_of_flagos(backend, run_isolated):
    run_isolated(FLAGOS, backend=backend).ok()


@pytest.mark.parametrize("backend", ["ascend", "mlu", "musa"])
def test_is_cuda_on_the_accelerator(backend, run_isolated):
    code = """
import torch
x = torch.ones(2, device="cuda")
assert x.is_cuda and not x.cpu().is_cuda and torch.nn.Parameter(x).is_cuda and x[1:].is_cuda
assert x.untyped_storage().is_cuda and not torch.ones(1).untyped_storage().is_cuda
assert torch.TypedStorage(2, dtype=torch.float32, device="cuda").is_cuda
from torch._subclasses import FakeTensorMode
with FakeTensorMode():
    assert torch.empty(2, device="cuda").is_cuda and not torch.empty(2).is_cuda
"""
    run_isolated(code, backend=backend).ok()
