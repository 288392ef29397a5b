"""What all tests share: fresh interpreters, started through the installed hook as a user's would be.

The process that runs pytest never imports torch: whatever patches it happens in a child.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

import flagos_shim
from flagos_shim import _startup

# The packages torch_mlu and torch_musa on a device of this project's own, where the vendors' are not to be had.
PRETEND = Path(__file__).parent / "pretend"

# Variables of the caller that would change what a test sees.
_FOREIGN = ("FLAGOS_", "ASCEND_", "CUDA_", "NCCL_", "PYTHON", "TASK_QUEUE_", "TORCH", "PYTORCH_")


@dataclass(frozen=True)
class Run:
    """What a child left behind."""

    returncode: int
    stdout: str
    stderr: str

    def ok(self) -> Run:
        """This, where the child ended well."""
        assert self.returncode == 0, f"exit code {self.returncode}\n{self.stdout[-2000:]}\n{self.stderr[-6000:]}"
        return self

    @property
    def json(self) -> Any:
        """What the child printed as JSON on its last line."""
        return json.loads(self.ok().stdout.splitlines()[-1])

    @property
    def last_error(self) -> str:
        """The last line of stderr: the exception that ended the child."""
        return self.stderr.strip().splitlines()[-1]


# Every vendor that can start here: the real plugin on host memory, two on the pretend device, and the CPU.
STARTABLE = ("ascend", "mlu", "musa", "cpu")

RunIsolated = Callable[..., Run]


def child_environment(
    backend: str | None = None, rehearse: bool = True, env: Mapping[str, str | None] | None = None
) -> dict[str, str]:
    """The environment of a child; a variable given as None is taken out."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    environ["OMP_NUM_THREADS"] = "1"
    if backend is not None:
        environ["FLAGOS_DEVICE_BACKEND"] = backend
    if backend == "ascend" and rehearse:
        environ["FLAGOS_SHIM_REHEARSE"] = "ascend"
    if backend in ("mlu", "musa"):
        environ["PYTHONPATH"] = str(PRETEND)
    for name, value in (env or {}).items():
        if value is None:
            environ.pop(name, None)
        else:
            environ[name] = value
    return environ


def _run_isolated(
    program: str | Path | None,
    *,
    backend: str | None = "ascend",
    rehearse: bool = True,
    env: Mapping[str, str | None] | None = None,
    args: Sequence[str] = (),
    flags: Sequence[str] = (),
    stdin: str | None = None,
    cwd: Path | None = None,
    timeout: float = 240,
) -> Run:
    """Run a program in a fresh interpreter, to whose start the installed hook belongs.

    Args:
        program: source text, the path of a script, or None where ``flags`` say what to run.
        backend: FLAGOS_DEVICE_BACKEND, or None to leave it unset.
        rehearse: whether ``ascend`` runs on host memory.
        env: further variables; None takes one out.
        args: the program's arguments.
        flags: the interpreter's options, e.g. ``("-X", "dev")``; may hold ``-m flagos_shim``.
        stdin: text for the program to read.
        timeout: seconds after which the child is killed and the test fails.
    """
    what = [] if program is None else [str(program)] if isinstance(program, Path) else ["-c", program]
    done = subprocess.run(
        [sys.executable, *flags, *what, *args],
        env=child_environment(backend, rehearse, env),
        input=stdin if stdin is not None else "",
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def run_isolated() -> RunIsolated:
    """See ``_run_isolated``: ``run_isolated(code_or_path, *, backend, rehearse, env, args, flags, stdin, cwd)``."""
    return _run_isolated


NPU_SMI = """#!{shell}
case "$*" in
"info") cat "{folder}/npu_info_910b.txt" ;;
"info -m") printf 'NPU ID  Chip ID  Chip Logic ID  Chip Name\\n0 0 0 Ascend 910B4\\n1 0 1 Ascend 910B4\\n' ;;
"info -t common -i 1") cat "{folder}/npu_view_common.txt" ;;
"info -t common -i 0") printf 'NPU ID : 0\\nChip Count : 1\\nChip ID : 0\\nAicore curFreq(MHZ) : 1650\\n' ;;
*) echo "unknown: $*"; exit 9 ;;
esac
"""


@pytest.fixture(scope="session")
def with_npu_smi(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which a child finds an `npu-smi` on its PATH that prints the samples of two 910B4."""
    folder = tmp_path_factory.mktemp("tools")
    tool = folder / "npu-smi"
    samples = Path(__file__).parent / "unit" / "data" / "smi"
    tool.write_text(NPU_SMI.format(shell=shutil.which("sh"), folder=samples), encoding="utf-8")
    tool.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(params=STARTABLE)
def backend(request: pytest.FixtureRequest) -> str:
    """The vendor in turn; a test that asks for it runs on all of them."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def _only_children_are_patched() -> Iterator[None]:
    yield
    assert flagos_shim.status() == {**flagos_shim.status(), "active": False, "waiting": False}


def pytest_configure() -> None:
    """Refuse to test a source tree that is not installed: automatic activation would not be there."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    if not any(Path(folder, "flagos_shim_startup.pth").exists() for folder in folders):
        pytest.exit("flagos_shim is not installed in this environment: python -m pip install -e '.[test]'", 4)
    _startup.withdraw()  # importing the package asked for activation
