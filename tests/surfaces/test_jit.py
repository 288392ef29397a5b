"""TorchScript; see inside/scripted.py and inside/scripted_names.py."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "inside" / "scripted.py"
NAMES = SCRIPT.with_name("scripted_names.py")


def checks(script: Path) -> list[str]:
    """The names of a script's checks, without running it."""
    body = ast.parse(script.read_text()).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


@pytest.fixture(scope="module", params=["ascend", "cpu"])
def outcome(request: pytest.FixtureRequest, run_isolated: Any) -> Any:
    """What became of each check in one child of a back end."""
    return run_isolated(SCRIPT, backend=request.param, timeout=600)


@pytest.mark.parametrize("check", checks(SCRIPT))
def test_jit(outcome: Any, check: str) -> None:
    assert outcome.json[check] is None, outcome.json[check]


@pytest.fixture(scope="module", params=["ascend", "mlu", "cpu"])
def names(request: pytest.FixtureRequest, run_isolated: Any) -> Any:
    """The same for the second script."""
    return run_isolated(NAMES, backend=request.param, timeout=600)


@pytest.mark.parametrize("check", checks(NAMES))
def test_names_and_autocast(names: Any, check: str) -> None:
    assert names.json[check] is None, names.json[check]
