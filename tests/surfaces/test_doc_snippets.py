"""Torch's own documentation of torch.compile, torch.compiler and torch.jit runs on cuda; see inside/doc_snippets.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "inside" / "doc_snippets.py"
# Natively it needs a CUDA device, so it cannot be tried without the shim.
ONLY_ON_CUDA = "torch.compiler.cudagraph_mark_step_begin#0"


@pytest.fixture(scope="module")
def runs_natively(run_isolated: Any) -> list[str]:
    """The snippets that run as they stand, in a torch without this package."""
    env = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    found = run_isolated(SCRIPT, backend=None, env=env, args=["plain"], timeout=600).json
    return [name for name, error in found.items() if error is None]


@pytest.mark.parametrize("backend", ["ascend", "cpu"])
def test_what_runs_natively_runs_on_cuda(
    run_isolated: Any, runs_natively: list[str], backend: str, tmp_path: Path
) -> None:
    wanted = {*runs_natively, ONLY_ON_CUDA}
    for group, least in (
        ("torch.compile#", 1),
        ("torch.jit.script#", 3),
        ("torch.jit.load#", 1),
        ("torch.jit.save#", 1),
    ):
        assert sum(name.startswith(group) for name in wanted) >= least, (group, wanted)
    (tmp_path / "wanted.json").write_text(json.dumps(sorted(wanted)))
    found = run_isolated(SCRIPT, backend=backend, args=["cuda", str(tmp_path / "wanted.json")], timeout=600).json
    assert set(found) == wanted
    assert not {name: error for name, error in found.items() if error}, found
