"""``FLAGOS_ASCEND_FUSED_*``: fp16 calls reach the plugin's fused operators, and nothing else does."""

from __future__ import annotations

import pytest

BOTH = {"FLAGOS_ASCEND_FUSED_LINEAR": "1", "FLAGOS_ASCEND_FUSED_LAYERNORM": "1"}

# Counts what the dispatcher is asked for, which is below every function of Python's.
COUNTED = """
import torch, torch.nn.functional as F
from torch.overrides import TorchFunctionMode


def count(call):
    with torch.autograd.profiler.profile() as profile:
        result = call()
    names = [event.name for event in profile.function_events]
    return result, names.count("npu::npu_linear"), names.count("npu::npu_layer_norm_eval")


def plain(call):
    "The same, unfused: the functions of torch that stand below the stand-ins."
    held = F.linear, torch.layer_norm
    F.linear, torch.layer_norm = F.linear.__wrapped__, torch.layer_norm.__wrapped__
    try:
        result, linear, norm = count(call)
    finally:
        F.linear, torch.layer_norm = held
    assert linear == norm == 0
    return result


def close(a, b):
    torch.testing.assert_close(a.float().cpu(), b.float().cpu(), rtol=5e-3, atol=5e-3)


torch.manual_seed(0)
x = torch.randn(3, 4, 6, dtype=torch.float16, device="cuda")
w, b = torch.randn(5, 6, dtype=torch.float16, device="cuda"), torch.randn(5, dtype=torch.float16, device="cuda")
g, h = torch.rand(6, dtype=torch.float16, device="cuda"), torch.rand(6, dtype=torch.float16, device="cuda")
"""

FUSED = """
for call in (
    lambda: F.linear(x, w, b), lambda: F.linear(x, w), lambda: F.linear(x[0], w, bias=b), lambda: F.linear(x[:, ::2], w, b),
    lambda: F.linear(input=x, weight=w, bias=b),
):
    result, linear, norm = count(call)
    assert (linear, norm) == (1, 0)
    close(result, plain(call))
for call in (lambda: F.layer_norm(x, (6,), g, h), lambda: F.layer_norm(x, [6], weight=g, bias=h, eps=1e-3),
             lambda: torch.layer_norm(x, (6,), g, h, 1e-5, False)):
    result, linear, norm = count(call)
    assert (linear, norm) == (0, 1)
    close(result, plain(call))

model = torch.nn.Sequential(torch.nn.LayerNorm(6), torch.nn.Linear(6, 5), torch.nn.Linear(5, 2)).half().cuda()
with torch.no_grad():
    result, linear, norm = count(lambda: model(x))
    assert (linear, norm) == (2, 1)
    close(result, plain(lambda: model(x)))


# npu_linear has a derivative, npu_layer_norm_eval has none.
def gradients():
    model.zero_grad()
    model(x).float().square().mean().backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


result, linear, norm = count(gradients)
assert (linear, norm) == (2, 0)
close(result, plain(gradients))
"""

AUTOCAST = """
for dtype in (torch.float16, torch.bfloat16):
    with torch.autocast("cuda", dtype=dtype):
        result, linear, norm = count(lambda: F.linear(x, w, b))
        assert linear == (dtype is torch.float16) and result.dtype is plain(lambda: F.linear(x, w, b)).dtype is dtype
        result, linear, norm = count(lambda: F.layer_norm(x, (6,), g, h))
        assert norm == 0 and result.dtype is plain(lambda: F.layer_norm(x, (6,), g, h)).dtype is torch.float32
        with torch.autocast("cuda", enabled=False):
            assert count(lambda: F.layer_norm(x, (6,), g, h))[2] == count(lambda: F.linear(x, w, b))[1] == 1

import torch.autograd.forward_ad as forward_ad
with forward_ad.dual_level():
    result, linear, norm = count(lambda: F.linear(forward_ad.make_dual(x, x), w, b))
    assert linear == 0 and forward_ad.unpack_dual(result).tangent is not None
assert count(lambda: F.linear(x, w, b))[1] == 1
"""

ASIDE = """
tracked = g.clone().requires_grad_()
low, host = torch.float32, "cpu"
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        seen.append(function)
        return super().__torch_function__(function, types, args, kwargs or {})


seen = []
F.linear(x.as_subclass(Mine), w), torch.layer_norm(x.as_subclass(Mine), (6,), g, h)
assert F.linear in seen and torch.layer_norm in seen, "__torch_function__ is given what the program sees"
for call in (
    lambda: F.linear(x.to(low), w.to(low), b.to(low)), lambda: F.linear(x.bfloat16(), w.bfloat16()),
    lambda: F.linear(x.to(host), w.to(host)), lambda: F.linear(x[0, 0], w, b), lambda: F.linear(x[:0], w, b),
    lambda: F.linear(x.as_subclass(Mine), w, b), lambda: F.linear(x, w[0]),
    lambda: torch.func.vmap(lambda row: F.linear(row, w, b))(x),
    lambda: F.layer_norm(x, (6,)), lambda: F.layer_norm(x, (6,), g), lambda: F.layer_norm(x, (6,), None, h),
    lambda: F.layer_norm(x.to(low), (6,), g.to(low), h.to(low)), lambda: F.layer_norm(x.to(host), (6,), g.to(host), h.to(host)),
    lambda: F.layer_norm(x, (6,), tracked, h), lambda: F.layer_norm(x.clone().requires_grad_(), (6,), g, h),
    lambda: F.layer_norm(x, (6,), g.to(low), h.to(low)),
):
    result, linear, norm = count(call)
    assert linear == norm == 0
    assert torch.equal(result.float(), plain(call).float())
with torch.no_grad():
    assert count(lambda: F.layer_norm(x, (6,), tracked, h))[2] == 1


class Watching(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append(function)
        return function(*args, **(kwargs or {}))


seen.clear()
with torch.device("cuda"):
    assert count(lambda: F.linear(x, w, b))[1] == 1
    with Watching():
        assert count(lambda: F.linear(x, w, b))[1] == 1
    assert F.linear in seen, "a mode is given what the program sees, and may go on with it"
for wrong in (lambda: F.linear(x, w.t().contiguous(), b), lambda: F.layer_norm(x, (5,), g, h), lambda: F.linear(x, w, g)):
    texts = []
    for run in (count, plain):
        try:
            run(wrong)
        except RuntimeError as error:
            texts.append(str(error))
    assert len(texts) == 2 and texts[0] == texts[1], texts

# Compiled, scripted and traced programs hold torch's own operators.
seen = []


def backend(graph, inputs):
    seen.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
    return graph.forward


def step(x):
    return F.layer_norm(F.linear(x, w, b), (5,), b, b)


with torch.no_grad():
    close(torch.compile(step, backend=backend, fullgraph=True)(x), step(x))
    assert any("linear" in name for name in seen) and any("norm" in name for name in seen) and "npu" not in str(seen), seen
    layer = torch.nn.Sequential(torch.nn.LayerNorm(6), torch.nn.Linear(6, 5)).half().cuda()
    for made in (torch.jit.script(layer), torch.jit.trace(layer, x)):
        graph = str(made.inlined_graph)
        assert "aten::linear" in graph and "aten::layer_norm" in graph and "npu::" not in graph
        close(made(x), layer(x))
    exported = torch.export.export(layer, (x,))
    assert "npu.npu" not in str(exported.graph)

import flagos_shim, pickle
assert pickle.loads(pickle.dumps(torch.layer_norm)) is torch.layer_norm and F.linear.__name__ == "linear"
taken = F.linear
assert flagos_shim.deactivate() == []
assert type(F.linear) is type(torch._C._nn.linear) is type(torch.layer_norm) is type(len)
assert count(lambda: taken(x, w, b))[1] == 0, "dormant"
"""

UNSET = """
import torch, torch.nn.functional as F
assert type(F.linear) is type(torch.layer_norm) is type(len), "torch's own builtins"
import flagos_shim
assert not [patch for patch in flagos_shim.status()["patches"] if patch["surface"] == "fused"]
"""

ONE = """
import torch.nn.functional as F
assert F.linear is torch._C._nn.linear and hasattr(F.linear, "__wrapped__") and type(torch.layer_norm) is type(len)
"""


@pytest.mark.parametrize("code", [FUSED, AUTOCAST, ASIDE], ids=["reach the fused", "autocast", "step aside"])
def test_fp16_calls(code, run_isolated):
    run_isolated(COUNTED + code, env=BOTH).ok()


def test_nothing_is_touched_unless_asked_for(run_isolated):
    run_isolated(UNSET, env={"FLAGOS_ASCEND_FUSED_LINEAR": "0"}).ok()
    run_isolated(COUNTED + ONE, env={"FLAGOS_ASCEND_FUSED_LINEAR": "1"}).ok()
