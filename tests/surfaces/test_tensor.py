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
import torch.flagos
# What torch_fl's torch.flagos has.
names = '''device device_count current_device set_device synchronize initial_seed is_available init is_initialized
    manual_seed manual_seed_all get_rng_state set_rng_state _is_in_bad_fork get_amp_supported_dtype Stream Event
    current_stream stream default_generators empty_cache memory_stats memory_allocated memory_reserved
    reset_peak_memory_stats get_device_properties'''.split()
assert [name for name in names if not hasattr(torch.flagos, name)] == []
own = {name for name in dir(torch.flagos) if getattr(torch.flagos, name) is not getattr(torch.cuda, name, torch)}
assert {name for name in own if not name.startswith("__")} == {"get_amp_supported_dtype"}, own
assert torch.bfloat16 in torch.flagos.get_amp_supported_dtype() and not hasattr(torch.cuda, "get_amp_supported_dtype")
assert torch.flagos.device_count() == torch.cuda.device_count()
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


WRAPPED = """
import flagos_shim, torch, os
backend = os.environ["FLAGOS_DEVICE_BACKEND"]
kind = torch.zeros(1, device="cuda").device.type
ours = torch.ones
def around(*args, **kwargs):
    calls.append(args)
    return ours(*args, **kwargs)
calls = []
torch.ones = around
for _ in range(2):
    assert flagos_shim.deactivate() == ["torch:ones"] and torch.ones is around
    flagos_shim.activate(backend)
    for device in ("cuda", "cuda:0", torch.device("cuda")):
        assert torch.ones(1, device=device).device.type == kind
        assert torch._C._VariableFunctions.ones(1, device=device).device.type == kind
assert len(calls) == 6 and not flagos_shim.status()["failures"]
torch.ones = ours
assert torch.ones(1, device="cuda").device.type == kind and len(calls) == 6
assert flagos_shim.deactivate() == []
assert type(torch.ones) is type(len) and torch.ones is torch._C._VariableFunctions.ones, "torch's own"

# A wrapper that was there first.
plain = torch.ones
def first(*args, **kwargs):
    return plain(*args, **kwargs)
torch.ones = first
flagos_shim.activate(backend)
assert torch.ones(1, device="cuda").device.type == kind
assert flagos_shim.deactivate() == [] and torch.ones is first
"""


def test_off_and_on_again_with_a_programs_own_wrapper_on_top(backend, run_isolated):
    run_isolated(WRAPPED, backend=backend).ok()


def test_a_mode_sees_type_as_the_program_wrote_it(backend, run_isolated):
    code = """
import torch
from torch.overrides import TorchFunctionMode
x = torch.ones(1, device="cuda")
seen = []
class Watching(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append((function, args[1:], kwargs or {}))
        return function(*args, **(kwargs or {}))
with Watching():
    made = [x.type("torch.cuda.DoubleTensor"), x.type(torch.float16), x.type(dtype=torch.int32), x.type(torch.int8, True)]
    name = x.type()
expected = [(("torch.cuda.DoubleTensor",), {}), ((torch.float16,), {}), ((), {"dtype": torch.int32})]
assert [(args, kwargs) for _, args, kwargs in seen] == [*expected, ((torch.int8, True), {}), ((), {})], seen
assert {function for function, _, _ in seen} == {torch.Tensor.type}
assert [y.dtype for y in made] == [torch.float64, torch.float16, torch.int32, torch.int8]
assert {y.device for y in made} == {x.device} and name == x.type()
"""
    run_isolated(code, backend=backend).ok()
