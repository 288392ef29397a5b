"""The old type names, collectives of one process, and the switches: accepted, remembered, harmless."""

from __future__ import annotations

import pytest

TYPES = """
import torch, warnings
warnings.simplefilter("ignore")
on_device = torch.ones(2, device="cuda")
prefix = "torch.cuda." if on_device.is_cuda else "torch."
for name in ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "BFloat16", "Bool"):
    kind, dtype = getattr(torch.cuda, f"{name}Tensor"), getattr(torch, f"{name}Tensor").dtype
    assert isinstance(kind, type) and kind.dtype is dtype
    made = kind([1, 0])
    assert made.dtype is dtype and made.device.type == on_device.device.type and isinstance(made, kind)
    assert made.type() == f"{prefix}{name}Tensor" and made.type(f"torch.cuda.{name}Tensor").dtype is dtype
    assert on_device.type(f"torch.cuda.{name}Tensor").device == on_device.device
    assert torch.ones(2).type(kind).device.type == on_device.device.type == torch.ones(2).type(made.type()).device.type
    assert on_device.type(f"torch.{name}Tensor").device.type == "cpu" and isinstance(made, torch.Tensor)
    assert isinstance(torch.ones(1, dtype=dtype), kind) == (not on_device.is_cuda)
assert on_device.type() == f"{prefix}FloatTensor" and torch.ones(1).type() == "torch.FloatTensor"
assert on_device.type(torch.float64).dtype is torch.float64 and on_device.type(dtype=torch.int8).dtype is torch.int8
assert not isinstance(on_device, torch.cuda.HalfTensor) and isinstance(on_device, torch.cuda.FloatTensor)
for bad in ("torch.cuda.NoTensor", "cuda.FloatTensor"):
    try:
        on_device.type(bad)
    except (ValueError, RuntimeError):
        pass
    else:
        raise AssertionError(bad)

for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool", "ComplexFloat",
             "ComplexDouble"):
    kind = getattr(torch.cuda, f"{name}Storage")
    assert isinstance(kind, type) and kind(3).device.type == on_device.device.type and len(kind(3)) == 3, name
    assert kind.dtype is getattr(torch, f"{name}Storage").dtype

indices = torch.tensor([[0, 1]])
try:
    sparse = torch.cuda.sparse.FloatTensor(indices, torch.ones(2), torch.Size([3]))
except NotImplementedError as error:  # the pretend device has no sparse kernels
    assert str(error).startswith("Operator not supported. ") and error.vendor in ("mlu", "musa"), error
else:
    assert sparse.to_dense().tolist() == [1, 1, 0] and isinstance(sparse, torch.cuda.sparse.FloatTensor)
    assert not isinstance(sparse, torch.cuda.sparse.HalfTensor)
    assert torch.cuda.sparse.LongTensor(2, 3).shape == (2, 3)
assert not isinstance(on_device, torch.cuda.sparse.FloatTensor)

for kind in ("torch.cuda.DoubleTensor", torch.cuda.HalfTensor, torch.cuda.FloatTensor):
    torch.set_default_tensor_type(kind)
    made = torch.zeros(2)
    assert made.device == on_device.device and made.dtype is torch.get_default_dtype()
torch.set_default_tensor_type(torch.FloatTensor)
assert torch.zeros(2).device.type == "cpu" and torch.get_default_dtype() is torch.float32
try:
    torch.set_default_tensor_type("torch.cuda.LongTensor")
except TypeError:
    pass
else:
    raise AssertionError("integers as default")
assert torch.zeros(2).device.type == "cpu"
"""

CONSTRUCTORS = """
import copy, pickle, warnings
import torch
warnings.simplefilter("ignore")
there = torch.ones(1, device="cuda").device
for name in ("Byte", "Long", "Half", "Float", "Double", "BFloat16", "Bool"):
    kind = getattr(torch.cuda, f"{name}Tensor")
    for device in ("cuda", "cuda:0", "flagos", torch.device("cuda"), torch.device("cuda:0")):
        assert kind(2, 3, device=device).device == there and kind([1, 0], device=device).dtype is kind.dtype
    assert isinstance(kind(2, device="cuda"), kind) and kind(2, 3).device == there
    assert isinstance(kind, type) and pickle.loads(pickle.dumps(kind)) is kind and copy.deepcopy(kind) is kind
    stored = getattr(torch.cuda, f"{name}Storage")
    assert pickle.loads(pickle.dumps(stored)) is stored and copy.deepcopy(stored) is stored
    assert stored(3).device.type == there.type and isinstance(torch.ones(2, device="cuda").type(kind).storage(), stored)
    assert isinstance(torch.zeros(1, dtype=kind.dtype).storage(), stored) == (there.type == "cpu")
assert torch.FloatTensor(2).device.type == torch.FloatTensor(2, device="cpu").device.type == "cpu"


class Mine(torch.Tensor):
    pass


plain = torch.Tensor.__new__
torch.set_default_tensor_type(torch.cuda.FloatTensor)


class Later(torch.Tensor):
    pass


for make in (lambda: torch.Tensor(2), lambda: torch.Tensor(2, 3), lambda: torch.Tensor(), lambda: torch.Tensor([1, 2]),
             lambda: torch.Tensor(torch.Size([2])), lambda: torch.cuda.FloatTensor(2), lambda: Later([2.0])):
    assert make().device == there and make().dtype is torch.float32, make().device
assert type(Later(2)) is Later and type(Mine(2)) is Mine and Later([2.0]).tolist() == [2]
assert torch.Tensor([1, 2]).tolist() == [1, 2] and torch.Tensor(torch.ones(3)).shape == (3,)
assert torch.FloatTensor(2).device.type == "cpu" and torch.nn.Parameter(torch.Tensor(2)).device == there
assert torch.Tensor(torch.ones(2, device="cpu")).device.type == "cpu"
torch.set_default_tensor_type("torch.cuda.DoubleTensor")
assert torch.Tensor(2).dtype is torch.float64 and torch.Tensor(2).device == there
try:
    torch.Tensor("text")
except (TypeError, ValueError, RuntimeError):
    pass
else:
    raise AssertionError("of a text")
torch.set_default_tensor_type(torch.FloatTensor)
assert torch.Tensor(2).device.type == torch.zeros(2).device.type == "cpu" == Later(2).device.type
assert torch.Tensor.__new__ is plain or torch.Tensor.__new__ == plain
torch.set_default_tensor_type(torch.cuda.FloatTensor)
import flagos_shim
flagos_shim.deactivate()
torch.set_default_device(None)
assert torch.Tensor(2).device.type == "cpu" == Later(2).device.type and torch.Tensor.__new__ == plain
"""

COLLECTIVES = """
import torch
from torch.cuda import comm, nccl
n = torch.cuda.device_count()
devices = list(range(n))
x = torch.arange(4.0, device="cuda")
copies = comm.broadcast(x, devices=devices)
assert [c.get_device() if c.is_cuda else 0 for c in copies] == devices and all(c.tolist() == x.tolist() for c in copies)
assert comm.broadcast(x, devices=["cuda:0"])[0].tolist() == x.tolist()
parts = comm.scatter(x, devices)
assert comm.gather(parts, destination=0).tolist() == x.tolist() == comm.gather(parts).tolist()
assert comm.gather(parts, destination="cpu").device.type == "cpu"
total = comm.reduce_add([c.clone() for c in copies], destination=0)
assert total.tolist() == [n * v for v in range(4)]
groups = comm.broadcast_coalesced([x, x + 1], devices)
assert comm.reduce_add_coalesced(groups, 0)[1].tolist() == [n * (v + 1) for v in range(4)]

given = [torch.full((2,), float(i + 1), device=f"cuda:{i}") for i in devices]
total = sum(range(1, n + 1))
nccl.all_reduce(given)
assert all(g.tolist() == [total, total] for g in given)
out = torch.zeros(2, device="cuda")
nccl.reduce(given, output=out)
assert out.tolist() == [n * total] * 2
nccl.broadcast([out, *given])
assert given[-1].tolist() == out.tolist() and not nccl.is_available(given)
gathered = [torch.zeros(2 * n, device=f"cuda:{i}") for i in devices]
nccl.all_gather(given, gathered)
assert gathered[0].tolist() == given[0].tolist() * n
halves = [torch.zeros(2, device=f"cuda:{i}") for i in devices]
nccl.reduce_scatter([g.clone() for g in gathered], halves)
assert halves[0].tolist() == [n * v for v in given[0].tolist()]

model = torch.nn.DataParallel(torch.nn.Linear(4, 2).cuda())
result = model(torch.ones(6, 4).cuda())
result.sum().backward()
assert result.shape == (6, 2) and model.module.weight.grad is not None
assert len(nccl.version()) >= 2
for use in (nccl.unique_id, lambda: nccl.init_rank(1, b"", 0)):
    try:
        use()
    except NotImplementedError as error:
        assert "torch.distributed" in str(error)
    else:
        raise AssertionError(use)
"""

SWITCHES = """
import torch
torch.cuda.set_sync_debug_mode("warn")
assert torch.cuda.get_sync_debug_mode() == 1
torch.cuda.set_sync_debug_mode(0)
assert torch.cuda.get_sync_debug_mode() == 0
try:
    torch.cuda.set_sync_debug_mode("loud")
except RuntimeError as error:
    assert "expected one of `default`, `warn`, `error`" in str(error)
else:
    raise AssertionError("loud?")
from torch.cuda import tunable
assert tunable.is_enabled() is False
tunable.enable(); tunable.tuning_enable(False); tunable.set_max_tuning_duration(5); tunable.set_filename("x.csv")
assert tunable.is_enabled() is True and not tunable.tuning_is_enabled() and tunable.get_max_tuning_duration() == 5
assert tunable.get_filename() == "x.csv" and not tunable.read_file("x.csv") and len(tunable.get_results()) == 0
for use, advice in (
    (lambda: torch.cuda.jiterator._create_jit_fn("x"), "write the kernel in Triton"),
    (lambda: torch.cuda.GreenContext.create(num_sms=1), "use streams"),
    (torch.cuda.GreenContext, "use streams"),
    (lambda: torch.cuda.gds.GdsFile("f", 0), "read the file into host memory"),
    (torch.cuda.current_solver_handle, "use torch.linalg"),
):
    try:
        use()
    except NotImplementedError as error:
        assert advice in str(error) and "is not supported on" in str(error) and str(error).startswith("torch.cuda.")
    else:
        raise AssertionError(use)
assert isinstance(torch.cuda.GreenContext, type) and isinstance(torch.cuda.gds.GdsFile, type)


class Mine(torch.cuda.GreenContext):
    pass


b = torch.backends
assert type(b.cuda.is_built()) is bool and isinstance(b.cudnn.is_available(), bool)
b.cuda.matmul.allow_tf32 = True
assert b.cuda.matmul.allow_tf32 is True
b.cuda.matmul.allow_tf32 = False
b.cudnn.benchmark, b.cudnn.allow_tf32 = True, False
assert b.cudnn.benchmark is True and b.cudnn.allow_tf32 is False
with b.cudnn.flags(enabled=False):
    assert b.cudnn.enabled is False
b.cuda.enable_mem_efficient_sdp(False); b.cuda.enable_mem_efficient_sdp(True)
if hasattr(b, "cusparselt"):
    assert isinstance(b.cusparselt.is_available(), bool)
with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
    q = torch.ones(1, 1, 2, 4, device="cuda")
    assert torch.nn.functional.scaled_dot_product_attention(q, q, q).shape == q.shape
assert not torch.xpu.is_available() and not torch.mtia.is_available() and torch.version.cuda is None
"""


@pytest.mark.parametrize(
    "code", [TYPES, CONSTRUCTORS, COLLECTIVES, SWITCHES], ids=["types", "constructors", "collectives", "switches"]
)
def test_types_collectives_switches(code, backend, run_isolated):
    run_isolated(code, backend=backend).ok()
