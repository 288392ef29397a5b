"""torch.compile over code that names devices, on the real plugin, a pretend one and the CPU; see inside/compiled_*.py."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

INSIDE = Path(__file__).parent / "inside"
MODELS = INSIDE / "compiled_models.py"
# Where its tensors live decides what inductor can make code for; there is none for the memory that stands in for a chip.
FUNCTIONS = {
    "ascend": ("eager", "aot_eager", "inductor"),
    "cpu": ("eager", "aot_eager", "inductor"),
    "mlu": ("aot_eager",),
}


def checks(script: Path) -> list[str]:
    """The names of a script's checks, without running it."""
    body = ast.parse(script.read_text()).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


@pytest.mark.parametrize(
    ("backend", "order"),
    [("ascend", "late"), ("ascend", "early"), ("cpu", "late"), ("cpu", "early"), ("mlu", "late")],
)
def test_functions_compile_whole(run_isolated: Any, backend: str, order: str) -> None:
    compilers = FUNCTIONS[backend] if order == "late" else ("aot_eager",)
    args = [*(["early"] if order == "early" else []), *compilers]
    found = run_isolated(INSIDE / "compiled_functions.py", backend=backend, args=args, timeout=900).json
    failed = {name: error for name, error in found.items() if error}
    assert len(found) == 59 * len(compilers)
    assert not failed, "\n".join(f"{name}: {error}" for name, error in failed.items())


@pytest.fixture(scope="module", params=["ascend", "cpu"])
def models(request: pytest.FixtureRequest, run_isolated: Any) -> Any:
    """What became of each check of models in one child of a back end."""
    return run_isolated(MODELS, backend=request.param, timeout=900)


@pytest.mark.parametrize("check", checks(MODELS))
def test_models(models: Any, check: str) -> None:
    assert models.json[check] is None, models.json[check]


BACK_ENDS = """
import json, logging, sys, torch
seen, answers = [], {}
logging.getLogger("flagos_shim").addHandler(type("H", (logging.Handler,), {"emit": lambda s, r: seen.append(r.getMessage())})())
want = torch.sin(torch.ones(3)) * 2 + 1
for place in ("cuda", "cpu"):
    for name in (None, "flagos", "ascend_ge", "mlu_bangc", "inductor", "FROM_OPTIMIZE"):
        for more in ({}, {"mode": "reduce-overhead"}, {"options": {"max_fusion_size": 8}}):
            torch._dynamo.reset()
            f = lambda x: torch.sin(x) * 2 + torch.ones(3, device=x.device)
            if name == "FROM_OPTIMIZE":
                g = torch._dynamo.optimize("flagos")(f)
            else:
                g = torch.compile(f, **more, **({} if name is None else {"backend": name}))
            x = torch.ones(3, device=place, requires_grad=True)
            out = g(x)
            out.sum().backward()
            assert out.device == x.device and torch.allclose(out.detach().cpu(), want) and x.grad.device == x.device
layer = torch.nn.Linear(3, 3).cuda()
layer.compile()
assert layer(torch.ones(1, 3, device="cuda")).device == layer.weight.device
assert {"flagos", "ascend_ge", "mlu_bangc", "inductor"} <= set(torch._dynamo.list_backends())
try:
    torch.compile(f, backend="no_such")
except Exception as error:
    assert type(error).__name__ == "InvalidBackend", error
else:
    raise AssertionError("no_such")
print(json.dumps([message for message in seen if "aot_eager" in message]))
"""


@pytest.mark.parametrize("backend", ["ascend", "cpu"])
def test_back_end_names_mean_the_best_there_is(run_isolated: Any, backend: str) -> None:
    said = run_isolated(BACK_ENDS, backend=backend, timeout=900).json
    assert len(said) == (backend == "ascend")


CHECKPOINT = """
import torch, torch.utils.checkpoint
for reentrant in (True, False):
    def f(x):
        half = lambda y: torch.nn.functional.dropout(torch.sin(y), 0.5)
        return torch.utils.checkpoint.checkpoint(half, x, use_reentrant=reentrant)

    torch._dynamo.reset()
    x = torch.ones(64, device="cuda", requires_grad=True)
    y = torch.compile(f, backend="aot_eager", fullgraph=True)(x)
    y.sum().backward()
    assert torch.equal(y != 0, x.grad != 0) and 0 < int((y != 0).sum()) < 64, reentrant
"""


@pytest.mark.parametrize("backend", ["mlu", "musa"])
def test_a_compiled_checkpoint_draws_the_same_dropout_again(run_isolated: Any, backend: str) -> None:
    run_isolated(CHECKPOINT, backend=backend).ok()


CACHE = """
import flagos_shim, torch
from torch._dynamo.utils import counters

def f(x):
    return torch.sin(x.to("cpu")) + torch.zeros(3, device="cpu") + torch.ones_like(x, device="cpu")

def cached():
    torch._dynamo.reset()
    counters.clear()
    torch.compile(f, backend="inductor")(torch.ones(3))
    return [name for name, count in counters["aot_autograd"].items() if "cache" in name and count]

first, second = cached(), cached()
assert "autograd_cache_saved" in first and second == ["autograd_cache_hit"], (first, second)
flagos_shim.deactivate()
first, second = cached(), cached()  # what another back end has compiled is not taken for torch's own
assert "autograd_cache_saved" in first and second == ["autograd_cache_hit"], (first, second)
"""


def test_graphs_with_factories_are_kept_for_a_warm_start(run_isolated: Any, tmp_path: Path) -> None:
    run_isolated(CACHE, backend="cpu", env={"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}).ok()


MISSING = """
import os, torch, sys
os.environ.pop("FLAGOS_SHIM_REHEARSE")  # as on a machine with the chip, but without the vendor's compilers
for name in (None, "ascend_ge", "inductor"):
    torch._dynamo.reset()
    try:
        torch.compile(lambda x: torch.sin(x), **({} if name is None else {"backend": name}))(torch.ones(2, device="cuda"))
    except Exception as error:
        text = str(error)
        assert "BackendUnavailableError" in text and "Huawei Ascend NPU" in text and "npugraph_ex" in text, text
        assert 'backend="aot_eager"' in text and ("'inductor'" if name == "inductor" else "'npu'") in text, text
        installed = text.partition("Installed here: ")[2].partition(".")[0].split(", ")
        assert not {"openxla", "tvm", "inductor" if name == "inductor" else "npu"} & set(installed), text
    else:
        raise AssertionError(name)
"""


def test_a_missing_compiler_is_named_with_what_is_installed(run_isolated: Any) -> None:
    run_isolated(MISSING, env={"PYTHONPATH": None}).ok()


FOREIGN = """
import torch
try:
    torch.compile(lambda x: torch.sin(x), backend="inductor")(torch.ones(2, device="cuda"))
except Exception as error:
    text = str(error)
    assert "BackendUnavailableError" in text and "Cambricon MLU" in text and "Installed here: " in text, text
    assert "npu" not in text.partition("Installed here: ")[2].partition(".")[0], text
else:
    raise AssertionError("inductor has no code generator for this device")
"""


def test_a_missing_compiler_is_not_another_vendors(run_isolated: Any) -> None:
    run_isolated(FOREIGN, backend="mlu").ok()


def test_nothing_of_dynamo_is_imported_by_activation(run_isolated: Any) -> None:
    code = "import torch, sys; assert 'torch._dynamo' not in sys.modules and 'torch._inductor' not in sys.modules"
    for backend in ("cpu", "ascend"):
        run_isolated(code, backend=backend).ok()
