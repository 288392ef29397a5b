"""The contract that every patch keeps, on each back end that can start here; see inside/every_patch.py."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

INSIDE = Path(__file__).parent / "inside"
SCRIPT = INSIDE / "every_patch.py"
BACKENDS = ("cpu", "ascend")


def checks(script: Path) -> list[str]:
    """The names of a script's checks, without running it."""
    body = ast.parse(script.read_text()).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


@pytest.fixture(scope="module", params=BACKENDS)
def outcome(request: pytest.FixtureRequest, run_isolated: Any) -> Any:
    """What became of each check in one child of a back end."""
    return run_isolated(SCRIPT, backend=None, args=[request.param])


@pytest.mark.parametrize("check", checks(SCRIPT))
def test_every_patch(outcome: Any, check: str) -> None:
    assert outcome.json[check] is None, outcome.json[check]


def test_every_check_has_run(outcome: Any) -> None:
    assert list(outcome.json) == checks(SCRIPT)


def test_what_was_pickled_while_active_loads_where_nothing_is(outcome: Any, run_isolated: Any) -> None:
    line = next(line for line in outcome.stdout.splitlines() if line.startswith("PICKLED "))
    code = f"""
import base64, pickle, sys, torch
values = pickle.loads(base64.b64decode({line.partition(" ")[2]!r}))
assert values[:2] == [torch.zeros, torch.Tensor.to] and type(values[3]) is str, values
assert (values[2], values[3]) in ((torch.device("cuda:0"), "cuda"), (torch.device("cpu"), "cpu")), values
assert values[9] is torch.cuda.is_available and values[10] is torch.device and type(values[7]) is torch.nn.Linear
assert not [name for name in sys.modules if "flagos" in name]
"""
    run_isolated(code, backend=None, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).ok()


@pytest.mark.parametrize("backend", BACKENDS)
def test_dynamo_first_used_while_active(run_isolated: Any, backend: str) -> None:
    """Its table of known functions is then built from the stand-ins, and must be forgotten afterwards."""
    code = """
import flagos_shim, torch
def plain(x): return torch.zeros(2) + x
def routed(x): return torch.zeros(2, device="cuda").cpu() + x
def compiled(f):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="eager")(torch.ones(2)).tolist()
assert compiled(plain) == compiled(routed) == [1, 1]
assert flagos_shim.status()["failures"] == {}
assert flagos_shim.deactivate() == []
assert compiled(plain) == [1, 1]
import sys
assert not [f for f in sys.meta_path if type(f).__module__ == "flagos_shim._importhook"]
"""
    run_isolated(code, backend=backend).ok()
