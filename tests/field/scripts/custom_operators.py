# Must hold: operators registered for CUDA, in each of torch.library's ways, run on the accelerator, with autograd and autocast.
import torch
from torch import Tensor

x = torch.arange(4.0, device="cuda")


@torch.library.custom_op("field_ops::double", mutates_args=(), device_types="cuda")
def double(a: Tensor) -> Tensor:
    return a * 2


@double.register_fake
def _(a):
    return torch.empty_like(a)


double.register_autograd(lambda ctx, grad: grad * 2)
y = x.clone().requires_grad_()
double(y).sum().backward()
assert double(x).tolist() == [0, 2, 4, 6] and y.grad.tolist() == [2, 2, 2, 2]
assert torch.compile(lambda a: double(a) + 1, backend="eager", fullgraph=True)(x).tolist() == [1, 3, 5, 7]
try:
    double(torch.ones(2))
except (NotImplementedError, RuntimeError):  # nobody gave it a kernel for the CPU
    pass
else:
    raise AssertionError("a kernel for CUDA ran on the CPU")


@torch.library.custom_op("field_ops::which", mutates_args=())
def which(a: Tensor) -> Tensor:
    return a * 0 + 1


@which.register_kernel("cuda")
def _(a):
    return a * 0 + 2


assert which(x)[0].item() == 2 and which(torch.ones(1)).item() == 1
with which.set_kernel_enabled("cuda", enabled=False):
    assert which(x)[0].item() == 1


@torch.library.custom_op("field_ops::make", mutates_args=(), device_types=["cpu", "cuda"])
def make(n: int, device: torch.device) -> Tensor:
    return torch.ones(n, device=device)


assert make(3, torch.device("cuda")).is_cuda and make(3, torch.device("cpu")).is_cpu

old = torch.library.Library("field_old", "DEF")
old.define("where(Tensor a) -> Tensor")
old.define("other(Tensor a) -> Tensor")
old.impl("where", lambda a: a + 10, "CUDA")
old.impl("where", lambda a: a + 20, "CPU")
assert torch.ops.field_old.where(x)[0].item() == 10
assert torch.ops.field_old.where(torch.zeros(1)).item() == 20
only = torch.library.Library("field_old", "IMPL", "CUDA")
only.impl("other", lambda a: a + 30)
assert torch.ops.field_old.other(x)[0].item() == 30

torch.library.define("field_old::named", "(Tensor a) -> Tensor")


@torch.library.impl("field_old::named", "cuda")
def named(a):
    return a + 40


assert torch.ops.field_old.named(x)[0].item() == 40
torch.library.register_autocast("field_ops::double", "cuda", torch.float16)
with torch.autocast("cuda", dtype=torch.float16):
    assert torch.ops.field_ops.double(x).dtype is torch.float16
print("OK")
