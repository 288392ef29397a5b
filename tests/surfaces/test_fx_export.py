"""fx, export, func and modes; see inside/exported.py."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "inside" / "exported.py"


def checks(script: Path) -> list[str]:
    """The names of a script's checks, without running it."""
    body = ast.parse(script.read_text()).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


@pytest.fixture(scope="module", params=["ascend", "cpu"])
def outcome(request: pytest.FixtureRequest, run_isolated: Any) -> Any:
    """What became of each check in one child of a back end."""
    return run_isolated(SCRIPT, backend=request.param, timeout=600)


@pytest.mark.parametrize("check", checks(SCRIPT))
def test_fx_export(outcome: Any, check: str) -> None:
    assert outcome.json[check] is None, outcome.json[check]


ONNX = SCRIPT.with_name("onnx_files.py")


@pytest.mark.parametrize("backend", ["ascend", "cpu"])
def test_onnx(run_isolated: Any, backend: str) -> None:
    found = run_isolated(ONNX, backend=backend, timeout=600).json
    assert list(found) == checks(ONNX) and not any(found.values()), found
