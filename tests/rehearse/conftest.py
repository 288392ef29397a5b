"""Runs programs on the rehearsed plugin, each in a fresh interpreter."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

HERE = pathlib.Path(__file__).resolve().parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]
_OURS = ("FLAGOS", "ASCEND", "TORCH_", "PYTORCH_", "TASK_QUEUE_ENABLE", "CUDA_VISIBLE_DEVICES")


def child_environment(**variables: str) -> dict[str, str]:
    """Return an environment for a child: this one without what steers the shim or a plugin, and ``variables``."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    if "FLAGOS_SHIM_CACHE" in os.environ:
        environment["FLAGOS_SHIM_CACHE"] = os.environ["FLAGOS_SHIM_CACHE"]
    site = os.pathsep.join([str(HERE / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    # torch would load the installed flagos_shim and torch_npu by itself; the programs import torch_npu.
    return {
        **environment,
        "PYTHONPATH": site,
        "OMP_NUM_THREADS": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        **variables,
    }


@pytest.fixture()
def run() -> Run:
    """Return a function that runs Python code, or a file of ``programs/``, in a rehearsal and returns what came of it."""

    def start(code: str, *arguments: str, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        source = [str(HERE / "programs" / code)] if code.endswith(".py") else ["-c", textwrap.dedent(code)]
        command = [sys.executable, *source, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=child_environment(**variables), timeout=300, check=False
        )
        assert done.returncode == status, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return start
