"""Rehearsal: a vendor's real PyTorch plugin on a machine without the vendor's chip.

Host memory stands in for the chip. ``FLAGOS_SHIM_REHEARSE=ascend`` asks for it; activation calls :func:`prepare` before
it imports the plugin, and a program without activation may call it before it imports torch. It lasts for the process.
"""

from __future__ import annotations

import os
import sys

from .errors import RehearsalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from .options import OPTIONS

KNOWN = ("ascend",)
VARIABLE = "FLAGOS_SHIM_REHEARSE"

__all__ = ["KNOWN", "OPTIONS", "VARIABLE", "RehearsalError", "check", "prepare"]


def __getattr__(name: str) -> object:
    if name == "OPTIONS":  # only the launcher wants it, and it costs an import of `re`
        from .options import OPTIONS

        return OPTIONS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _known(name: str) -> str:
    if name.strip().lower() not in KNOWN:
        raise RehearsalError(f"{VARIABLE}={name!r} is not a vendor that can be rehearsed; known: {', '.join(KNOWN)}.")
    return name.strip().lower()


def prepare(name: str, environ: MutableMapping[str, str]) -> None:
    """Arrange that the rehearsal of the vendor ``name`` starts as soon as torch is imported.

    Does nothing where ``environ`` has no FLAGOS_SHIM_REHEARSE, and nothing the second time. Raises RehearsalError
    for an unknown name. What else may be wrong is raised when torch is imported; :func:`check` tells it before.
    """
    if not environ.get(VARIABLE):
        return
    name = _known(name)
    from ._finder import Finder

    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder(name, environ))


def check(name: str = "ascend", environ: Mapping[str, str] = os.environ) -> None:
    """Raise RehearsalError, with the line that mends it, where the vendor ``name`` cannot be rehearsed here.

    Looks for the platform, the compiler, torch, the plugin, and a real SDK that would be shadowed, and checks the
    options. Imports neither torch nor the plugin.
    """
    _known(name)
    from .ascend import check as check_ascend

    check_ascend(environ)
