# ruff: noqa: B009, E402, SIM202, SIM300, UP031
"""Device-naming code compiled with fullgraph=True: the same results and branches as in eager mode, and no recompile.

Arguments: "early" where dynamo is imported before activation, and the names of back ends.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings

EARLY = "early" in sys.argv
backend = os.environ["FLAGOS_DEVICE_BACKEND"]
if EARLY:
    import flagos_shim

    flagos_shim.deactivate()
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch

if EARLY:
    import torch._dynamo

    flagos_shim.activate(backend)

import torch.utils.checkpoint
from _compilers import same
from torch._dynamo.utils import counters

VENDOR = str(torch.zeros(1, device="cuda").device.type)
KIND = torch.zeros(1, device="cuda").device.type
DEV = torch.device("cuda")
CASES = []
# Torch 2.13 itself breaks the graph on these, on CUDA too.
TORCH_BREAKS = []


def case(function):
    CASES.append(function)
    return function


def torch_breaks(function):
    TORCH_BREAKS.append(function)
    return function


def source():
    return torch.arange(3.0, device="cuda")


@case
def ctor_forms(x):
    return (
        x
        + torch.zeros(3, device=torch.device("cuda"))
        + torch.ones(3, device=torch.device("cuda", 0))
        + torch.ones(3, device=torch.device("cuda:0"))
        + torch.ones(3, device=torch.device(type="cuda", index=0))
        + torch.ones(3, device=torch.device(type="cuda"))
        + torch.ones(3, device=torch.device(torch.device("cuda")))
    )


@case
def int_ctor(x):
    return x + torch.ones(3, device=torch.device(0))


@case
def int_device(x):
    return x + torch.ones(3, device=0)


@case
def factories(x):
    return (
        x
        + torch.zeros(3, device="cuda")
        + torch.ones(3, device="cuda:0")
        + torch.full((3,), 2.0, device="cuda")
        + torch.arange(3, device="cuda")
        + torch.linspace(0, 1, 3, device="cuda")
        + torch.tensor([1.0, 2, 3], device="cuda")
        + torch.eye(3, device="cuda")[0]
        + torch.empty(3, device="cuda").fill_(1)
        + torch.as_tensor([1.0, 2, 3], device="cuda")
        + torch.scalar_tensor(1.0, device="cuda")
    )


@case
def likes(x):
    return (
        torch.zeros_like(x, device="cuda")
        + torch.ones_like(x.cpu(), device="cuda")
        + torch.full_like(x, 3.0, device="cuda:0")
        + torch.empty_like(x, device="cuda").zero_()
    )


@case
def news(x):
    return (
        x.new_zeros(3, device="cuda")
        + x.cpu().new_ones((3,), device="cuda")
        + x.new_full((3,), 2.0, device="cuda")
        + x.new_tensor([1.0, 2.0, 3.0], device="cuda")
        + x.new_empty((3,), device="cuda").zero_()
    )


@case
def to_forms(x):
    c = x.cpu()
    return (
        c.to("cuda")
        + c.to(device="cuda")
        + c.to("cuda", torch.float64)
        + c.to(torch.device("cuda:0"), non_blocking=True)
        + c.to("cuda:0", copy=True)
        + c.to(x)
    )


@case
def dot_cuda(x):
    return x.cpu().cuda() + x.cpu().cuda(0) + x.cpu().cuda("cuda:0") + x.cpu().cuda(non_blocking=True)


@case
def is_cuda(x):
    return (x * 2 if x.is_cuda else x * 3), (1 if x.cpu().is_cuda else 2), x.is_cuda


@case
def type_eq(x):
    return x * 2 if x.device.type == "cuda" else x * 3


@case
def type_eq_rev(x):
    return x * 2 if "cuda" == x.device.type and not "cuda" != x.device.type else x * 3


@case
def type_ne(x):
    return x * 2 if x.device.type != "cuda" else x * 3


@case
def type_ne_cpu(x):
    return x * 2 if x.device.type != "cpu" else x * 3


@case
def type_vendor(x):
    return x * 2 if x.device.type == VENDOR else x * 3


@case
def type_in(x):
    return x * 2 if x.device.type in ("cuda", "mps") else x * 3


@case
def type_in_list(x):
    return x * 2 if x.device.type in ["mps", "cuda"] else x * 3


@case
def type_in_set(x):
    return x * 2 if x.device.type in {"cuda", "mps"} else x * 3


@case
def type_not_in(x):
    return x * 2 if x.device.type not in ("cpu", "mps") else x * 3


@case
def type_dict(x):
    d = {"cuda": 2, "cpu": 3, "npu": 5}
    return x * d[x.device.type], x * d.get(x.device.type, 7)


@case
def type_fstring(x):
    return (
        f"{x.device.type}:{x.device.index}",
        str(x.device),
        "%s" % x.device.type,
        x.device.type + "!",
        x.device.type.upper(),
    )


@case
def type_returned(x):
    return x + 1, x.device.type, x.device


@case
def type_split(x):
    return x * 2 if str(x.device).split(":")[0] == "cuda" else x * 3


@case
def type_as_device(x):
    return torch.zeros(3, device=x.device.type) + torch.zeros(3, device=str(x.device)) + x.cpu().to(x.device.type)


@case
def type_global(x):
    return x * 2 if KIND == "cuda" else x * 3


@case
def type_getattr(x):
    return x * (2 if getattr(x.device, "type") == "cuda" else 3) + (0 if getattr(x, "device").type == "cuda" else 1)


@case
def type_prefix(x):
    kind = x.device.type
    return (
        x * (2 if kind.startswith("cuda") else 3),
        x * (2 if kind.startswith(("cuda", "mps")) else 3),
        x * (2 if kind.lower().startswith("cuda") else 3),
        x * (2 if kind.endswith("cuda") else 3),
        x * (2 if KIND.startswith("cuda") else 3),
        x.cpu().device.type.startswith("cuda"),
    )


@case
def type_holds(x):
    return x * (2 if "cuda" in x.device.type else 3), x * (2 if "cuda" in KIND else 3), "cuda" in x.cpu().device.type


@case
def old_type_names(x):
    name = x.type()
    return (
        name,
        x * (2 if name == "torch.cuda.FloatTensor" else 3),
        x * (2 if "cuda" in name else 3),
        x * (2 if name.startswith("torch.cuda") else 3),
        x.cpu().type(),
        x.cpu().type(torch.cuda.FloatTensor),
        x.type(dtype="torch.cuda.DoubleTensor"),
        x.type(torch.float16),
    )


@case
def old_types(x):
    return (
        isinstance(x, torch.cuda.FloatTensor),
        isinstance(x, (torch.cuda.HalfTensor, torch.cuda.FloatTensor)),
        isinstance(x, torch.cuda.HalfTensor),
        isinstance(x, torch.Tensor),
    )


@case
def event(x):
    done = torch.cuda.Event()
    done.record()
    y = x * 2
    done.synchronize()
    return y


@case
def streams(x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2
    torch.cuda.current_stream().wait_stream(side)
    return y


@case
def dev_global(x):
    return x + torch.zeros(3, device=DEV) if DEV.type == "cuda" else x


@case
def dev_eq(x):
    return x * 2 if x.device == torch.device("cuda:0") else x * 3


@case
def dev_eq2(x):
    return x * 2 if torch.device("cuda").type == x.device.type else x * 3


@case
def isinst(x):
    return (
        x * 2
        if isinstance(x.device, torch.device) and isinstance(DEV, torch.device) and isinstance(x.device.type, str)
        else x * 3
    )


@case
def avail(x):
    return x * 2 if torch.cuda.is_available() else x * 3


@case
def cur(x):
    return x + torch.cuda.current_device() + torch.cuda.device_count()


@case
def cur_dev(x):
    return torch.zeros(3, device=torch.cuda.current_device()) + torch.zeros(
        3, device=f"cuda:{torch.cuda.current_device()}"
    )


@case
def idiom(x):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return x.to(device) + torch.zeros(3, device=device)


@case
def idiom2(x):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return x.to(device) + torch.zeros(3, device=device)


@case
def props(x):
    return x + torch.cuda.get_device_properties(0).major


@case
def autocast(x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return torch.mm(x.reshape(3, 1), x.reshape(1, 3))


@case
def autocast2(x):
    with torch.autocast(device_type=x.device.type, dtype=torch.bfloat16):
        return torch.mm(x.reshape(3, 1), x.reshape(1, 3))


@case
def autocast3(x):
    with torch.amp.autocast("cuda", enabled=False):
        return torch.mm(x.reshape(3, 1), x.reshape(1, 3)), torch.is_autocast_enabled("cuda")


@case
def autocast4(x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return torch.is_autocast_enabled("cuda"), torch.is_autocast_enabled(), torch.get_autocast_dtype("cuda"), x * 1


@case
def autocast5(x):
    with warnings.catch_warnings():
        pass
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        return torch.mm(x.reshape(3, 1), x.reshape(1, 3))


@case
def ckpt(x):
    return torch.utils.checkpoint.checkpoint(
        lambda y: torch.sin(y) * torch.ones(3, device="cuda"), x, use_reentrant=False
    )


@case
def default_device(x):
    torch.set_default_device("cuda")
    y = torch.zeros(3)
    torch.set_default_device(None)
    return x + y


@case
def module_to(x):
    return x.to(device=x.device, dtype=torch.float64).type(torch.float32)


@case
def cpu_method(x):
    return x.cpu().is_cuda, x.to("cpu").device.type == "cpu", x.cpu().device.type == "cuda", x.cpu()


@case
def get_device(x):
    return x.get_device(), x.device.index


@case
def generator_free_rand(x):
    return (
        torch.rand(3, device="cuda").shape,
        torch.randn(3, device="cuda") * 0,
        torch.randint(0, 1, (3,), device="cuda"),
        torch.randperm(3, device="cuda").sort()[0],
    )


@case
def interp(x):
    return torch.nn.functional.scaled_dot_product_attention(
        x.reshape(1, 1, 3, 1), x.reshape(1, 1, 3, 1), x.reshape(1, 1, 3, 1)
    )


@case
def tril(x):
    return (
        torch.tril(torch.ones(3, 3, device=x.device)),
        torch.triu_indices(3, 3, device="cuda"),
        torch.hann_window(3, device="cuda"),
        torch.fft.fftfreq(3, device="cuda"),
    )


@case
def nograd(x):
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):
        return x * torch.full((3,), 2.0, device=x.device)


@case
def devmod(x):
    return x * 2 if torch.get_device_module("cuda") is torch.cuda else x


@case
def sync(x):
    torch.cuda.synchronize()
    return x * 2


@case
def stream(x):
    with torch.cuda.stream(torch.cuda.Stream()):
        y = x * 2
    return y


@case
def capability(x):
    return x * 2 if torch.cuda.get_device_capability()[0] >= 8 else x * 3


@torch_breaks
def with_device(x):
    with torch.device("cuda"):
        return x + torch.zeros(3) + torch.arange(3)


@torch_breaks
def get_default(x):
    return x if torch.get_default_device().type == "cpu" else x * 2


@torch_breaks
def pin(x):
    return x.cpu().is_pinned()


@torch_breaks
def memory(x):
    return x + 0 * torch.cuda.memory_allocated()


@torch_breaks
def manual_seed(x):
    torch.manual_seed(3)
    return torch.rand(3, device="cuda").shape


@torch_breaks
def bf16(x):
    return x * 2 if torch.cuda.is_bf16_supported() else x * 3


def compiled(function, backend):
    torch._dynamo.reset()
    counters.clear()
    graph = torch.compile(function, backend=backend, fullgraph=True)
    same(function(source()), graph(source()))
    count = counters["stats"]["unique_graphs"]
    same(function(source()), graph(source()))
    assert counters["stats"]["unique_graphs"] == count <= 1, "compiled again for the same input"
    assert not counters["graph_break"], dict(counters["graph_break"])


results = {}
warnings.simplefilter("ignore")
for name in [argument for argument in sys.argv[1:] if argument != "early"]:
    for function in CASES:
        try:
            compiled(function, name)
            results[f"{name} {function.__name__}"] = None
        except Exception:
            results[f"{name} {function.__name__}"] = traceback.format_exc()[-2500:]
for function in TORCH_BREAKS:
    torch._dynamo.reset()
    same(function(source()), torch.compile(function, backend="eager")(source()))
print(json.dumps(results))
