"""Rehearsal of Ascend: the real torch_npu plugin, with this package's runtime in the place of CANN."""

from __future__ import annotations

import ctypes
import glob
import importlib.machinery
import importlib.metadata
import os
import re
import sys

from .. import options
from ..errors import RehearsalError
from . import build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping
    from pathlib import Path

_started: list[Path] = []
# What a real CANN installation announces itself by (its set_env.sh sets both).
_CANN_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_CANN_LIBRARY = ("lib64/libascendcl.so", "runtime/lib64/libascendcl.so")


def check(environ: Mapping[str, str]) -> None:
    """Raise RehearsalError where Ascend cannot be rehearsed here; imports neither torch nor torch_npu."""
    if not sys.platform.startswith("linux"):
        raise RehearsalError(
            f"Ascend can only be rehearsed on Linux, where torch_npu exists; this is {sys.platform}. "
            "Run the script with FLAGOS_DEVICE_BACKEND=cpu instead."
        )
    options.check(environ)
    _check_packages()
    _check_real_cann(environ)
    if not build.is_built(environ):
        build.compiler(environ)


def _release(package: str) -> str | None:
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    found = re.match(r"\d+\.\d+\.\d+", version)
    return found[0] if found else version


def _found(module: str) -> bool:
    return importlib.machinery.PathFinder.find_spec(module) is not None


def _check_packages() -> None:
    torch, plugin = _release("torch"), _release("torch_npu")
    if torch is None or not _found("torch"):
        raise RehearsalError(
            "Rehearsing Ascend needs torch, which is not installed here. Install both:\n"
            "    python -m pip install torch==2.13.0 torch-npu==2.13.0"
        )
    if plugin is None or not _found("torch_npu"):
        raise RehearsalError(
            f"Rehearsing Ascend needs torch_npu, the real plugin, which is not installed here. Install it:\n"
            f"    python -m pip install torch-npu=={torch} numpy pyyaml"
        )
    if plugin != torch:
        raise RehearsalError(
            f"torch_npu {plugin} does not go with torch {torch}: both must be of the same release. Install:\n"
            f"    python -m pip install torch-npu=={torch}"
        )
    missing = [package for package, module in (("numpy", "numpy"), ("pyyaml", "yaml")) if not _found(module)]
    if missing:
        raise RehearsalError(
            f"torch_npu needs {' and '.join(missing)}, not installed here. Install:\n"
            f"    python -m pip install {' '.join(missing)}"
        )


def _real_cann(environ: Mapping[str, str]) -> Iterator[str]:
    """What in ``environ`` points at a CANN that was not built here, each as the beginning of a sentence."""
    for variable in _CANN_VARIABLES:
        home = environ.get(variable)
        if home and not build.is_ours(home) and any(os.path.exists(os.path.join(home, name)) for name in _CANN_LIBRARY):
            yield f"{variable}={home} is"
    # Ours stand inside a home of ours: its folders lib64 and opp.
    for folder in filter(None, environ.get("LD_LIBRARY_PATH", "").split(":")):
        library = os.path.join(folder, "libascendcl.so")
        if os.path.exists(library) and not build.is_ours(os.path.dirname(os.path.abspath(folder))):
            yield f"LD_LIBRARY_PATH names {folder}, which belongs to"
    operators = environ.get("ASCEND_OPP_PATH")
    if operators and os.path.isdir(operators) and not build.is_ours(os.path.dirname(os.path.abspath(operators))):
        yield f"ASCEND_OPP_PATH={operators} belongs to"


def _check_real_cann(environ: Mapping[str, str]) -> None:
    if environ.get(options.FORCE) == "1":
        return
    for found in _real_cann(environ):
        raise RehearsalError(
            f"{found} a real CANN installation, which a rehearsal would shadow. "
            f"Run without the rehearsal to use the chip, or set {options.FORCE}=1 to rehearse all the same."
        )
    chips = glob.glob("/dev/davinci[0-9]*")
    if chips:
        raise RehearsalError(
            f"This machine has real Ascend chips ({', '.join(sorted(chips))}), which a rehearsal would hide. "
            f"Run without the rehearsal to use them, or set {options.FORCE}=1 to rehearse all the same."
        )


def start(environ: MutableMapping[str, str]) -> None:
    """Build the runtime where that is not done yet, load it and set the variables that torch_npu needs; once a process.

    Raises RehearsalError as :func:`check` does, and where the runtime cannot be built.
    """
    if _started:
        return
    if "torch_npu" in sys.modules:
        raise RehearsalError(
            "torch_npu was imported before the rehearsal was prepared, so it cannot be rehearsed in this process. "
            "Set FLAGOS_SHIM_REHEARSE=ascend in the environment before Python starts."
        )
    check(environ)
    home = build.build(environ)
    environ["ASCEND_HOME_PATH"] = str(home)
    environ["ASCEND_TOOLKIT_HOME"] = str(home)
    environ["ASCEND_OPP_PATH"] = str(home / "opp")
    environ["TASK_QUEUE_ENABLE"] = "0"  # operators run at once, so nothing may wait in torch_npu's queue
    for library in build.libraries(home, operators_fail=options.operators_fail(environ)):
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    _started.append(home)


def install(environ: Mapping[str, str]) -> None:
    """Replace torch_npu's operators by ones that compute on the host; called after torch_npu's import."""
    from . import notice, operators

    operators.install(options.entries(environ, options.UNSUPPORTED))
    notice.keep_off()
