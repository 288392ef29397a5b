"""Automatic activation: what the installed ``.pth`` line and torch's own entry point call.

The ``.pth`` line imports this only where a variable asks for it.  Nothing here imports torch: a hook waits for the
program to do so, and an interpreter that never imports torch never feels it.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Callable

from ._importhook import when_imported

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


class _Waiting:
    """The hook that waits for torch, at most one a process."""

    def __init__(self) -> None:
        self.cancel: Callable[[], None] | None = None
        self.autoload: str | None = None
        self.set_aside = False


_waiting = _Waiting()


def install() -> None:
    """Activate as soon as torch has been imported; at once where it has been already.  Idempotent.

    Raises:
        FlagosShimError: from activation, where torch has been imported already.
    """
    rehearsed = os.environ.get("FLAGOS_SHIM_REHEARSE")
    if rehearsed:
        from .rehearse import prepare

        prepare(rehearsed, os.environ)
    if _waiting.cancel is None:
        _waiting.cancel = when_imported("torch", _activate, before=_set_autoload_aside)


def withdraw() -> None:
    """Do not wait for torch any more: for tools that look at torch as it is."""
    if _waiting.cancel is not None:
        _waiting.cancel()
        _waiting.cancel = None


def _set_autoload_aside(_torch: ModuleType) -> None:
    """Keep torch from loading every installed plugin by itself.

    A half-installed one would make ``import torch`` fail, chosen or not; activation imports the chosen one.
    """
    _waiting.autoload, _waiting.set_aside = os.environ.get(_AUTOLOAD), True
    os.environ[_AUTOLOAD] = "0"


def _activate(_torch: ModuleType) -> None:
    if _waiting.set_aside:
        _waiting.set_aside = False
        if _waiting.autoload is None:
            os.environ.pop(_AUTOLOAD, None)
        else:
            os.environ[_AUTOLOAD] = _waiting.autoload
    from ._activation import activate

    activate()


def autoload() -> None:
    """The entry point that torch calls at the end of its own import; does nothing unless a back end was asked for."""
    if os.environ.get("FLAGOS_DEVICE_BACKEND") or os.environ.get("FLAGOS_SHIM_REHEARSE"):
        install()


def torch_is_importing() -> bool:
    """True while torch itself is being imported: then its entry point brought us here, and nobody has asked."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(getattr(torch.__spec__, "_initializing", False))
