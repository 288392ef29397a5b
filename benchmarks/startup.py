"""What it costs to have the shim installed, and to switch it on.

Processor time decides here: it is what one start takes on an idle machine, and neighbours do not change it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from .measure import ROOT
from .ways import WAYS, environment

_HOOK = ROOT / "src" / "flagos_shim_startup.pth"


def activation(count: int) -> dict[str, dict[str, float]]:
    """Medians of processor time, wall time (seconds) and memory (bytes) of activation, in fresh interpreters.

    Args:
        count: interpreters of each way, by turns.
    """
    found: dict[str, list[dict[str, float]]] = {"ascend/shim": [], "ascend/peer": [], "cpu/shim": []}
    for _ in range(count):
        for key, results in found.items():
            variables = {**environment(WAYS[key], dict(os.environ)), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
            for name in ("FLAGOS_DEVICE_BACKEND", "FLAGOS_SHIM_REHEARSE"):
                variables.pop(name, None)
            command = [sys.executable, "-m", "benchmarks.activation", key]
            done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True)
            results.append(json.loads(done.stdout))
    return {
        key: {name: statistics.median(result[name] for result in results) for name in ("seconds", "wall", "memory")}
        for key, results in found.items()
    }


def interpreter(pairs: int) -> dict[str, float]:
    """Median seconds of processor time that the installed start-up hook adds to ``python -c pass``.

    Two virtual environments that differ in nothing but the hook are started by turns.

    Args:
        pairs: how often each is started.

    Returns:
        ``plain`` (an interpreter without the hook), and on top of it ``unused`` (nothing asks for the shim) and
        ``asked`` (a back end is chosen, torch is never imported).
    """
    with tempfile.TemporaryDirectory() as folder:
        without, with_hook = (_environment(Path(folder) / name, name == "hook") for name in ("plain", "hook"))
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("FLAGOS_", "PYTHON"))}
        asked = {**clean, "FLAGOS_DEVICE_BACKEND": "ascend"}
        for python in (without, with_hook):
            _seconds(python, asked)
        plain, unused, used = [], [], []
        for _ in range(pairs):
            plain.append(_seconds(without, clean))
            unused.append(_seconds(with_hook, clean))
            used.append(_seconds(with_hook, asked))
    return {
        "plain": statistics.median(plain),
        "unused": statistics.median(b - a for a, b in zip(plain, unused)),
        "asked": statistics.median(b - a for a, b in zip(plain, used)),
    }


def _environment(folder: Path, hook: bool) -> Path:
    """A virtual environment with the package on its path, as an editable installation has it; return its python."""
    venv.EnvBuilder(symlinks=True).create(folder)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    (site / "_flagos_shim.pth").write_text(f"{ROOT / 'src'}\n")
    if hook:
        (site / _HOOK.name).write_bytes(_HOOK.read_bytes())
    return folder / "bin" / "python"


def _seconds(python: Path, variables: dict[str, str]) -> float:
    process = subprocess.Popen([python, "-c", "pass"], env=variables)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{python} -c pass ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
