"""Runs, in a child, the check_* functions of a script, and prints what became of each as JSON on the last line."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

FOLDER = Path(tempfile.mkdtemp(prefix="flagos_shim_"))


def checks(script: Path) -> list[str]:
    """The names of a script's checks, without running it."""
    body = ast.parse(script.read_text()).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


def run(namespace: dict[str, Any]) -> None:
    """Run the checks in the order in which they stand."""
    results = {}
    for name, check in list(namespace.items()):
        if name.startswith("check_") and callable(check):
            try:
                check()
                results[name] = None
            except Exception:
                results[name] = traceback.format_exc()[-3000:]
    print(json.dumps(results))


def same(left: Any, right: Any) -> None:
    """Raise where two results differ in value, type, device or data type."""
    import torch

    if isinstance(left, torch.Tensor):
        assert isinstance(right, torch.Tensor)
        assert (left.device, left.dtype) == (right.device, right.dtype), (left.device, right.device)
        assert torch.allclose(left.cpu(), right.cpu(), atol=1e-5), (left, right)
    elif isinstance(left, (tuple, list)):
        assert len(left) == len(right)
        for one, other in zip(left, right):
            same(one, other)
    else:
        assert type(left) is type(right) and left == right, (left, right, type(left), type(right))


def without_the_shim(code: str, *arguments: Any) -> str:
    """Run code in an interpreter that has neither this package nor a plugin; return what it prints."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FLAGOS")}
    environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    head = (
        "import sys, warnings; warnings.simplefilter('ignore'); import torch; assert 'torch_npu' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + code, *map(str, arguments)], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
