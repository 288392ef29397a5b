"""Automatic activation: what the installed ``.pth`` line and torch's own entry point call.

The ``.pth`` line imports this only where a variable asks for it.  Nothing here imports torch: a hook waits for the
program to do so, and an interpreter that never imports torch never feels it.
"""

from __future__ import annotations

import os
import sys

from ._importhook import import_first, importing, when_imported
from .vendors import PLUGINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


class _Waiting:
    """The hook that waits for torch, at most one a process."""

    def __init__(self) -> None:
        self.cancels: list[Callable[[], None]] = []
        self.autoload_set_aside = False


_waiting = _Waiting()


class AutoloadSetAside:
    """A block in which torch, when it is imported, does not load every installed plugin by itself.

    A half-installed one would make ``import torch`` fail, chosen or not; activation imports the chosen one.
    """

    def __enter__(self) -> None:
        self._before = os.environ.get(_AUTOLOAD)
        os.environ[_AUTOLOAD] = "0"

    def __exit__(self, *_raised: object) -> None:
        _waiting.autoload_set_aside = True
        if self._before is None:
            os.environ.pop(_AUTOLOAD, None)
        else:
            os.environ[_AUTOLOAD] = self._before


def install() -> None:
    """Activate as soon as torch has been imported; at once where it has been already.  Idempotent.

    Raises:
        FlagosShimError: from activation, where torch has been imported already.
    """
    if os.environ.get("FLAGOS_SHIM_ASKED"):
        return  # detection asks here for a driver's answer
    if "torch" in sys.modules:
        when_imported("torch", _activate)
    elif not _waiting.cancels:
        # A plugin that the program imports before torch would still be half imported when torch has been.
        cancels = [import_first(plugin, "torch") for plugin in PLUGINS]
        _waiting.cancels = [when_imported("torch", _activate, during=AutoloadSetAside), *cancels]


def withdraw() -> None:
    """Do not wait for torch any more: for ``deactivate()``, and for tools that look at torch as it is."""
    cancels, _waiting.cancels = _waiting.cancels, []
    for cancel in cancels:
        cancel()


def waiting() -> bool:
    """True where activation is to come with the import of torch."""
    return bool(_waiting.cancels)


def autoload_was_set_aside() -> bool:
    """True where torch was imported with its own loading of plugins switched off."""
    return _waiting.autoload_set_aside


def _activate(_torch: ModuleType) -> None:
    from ._activation import activate

    activate()
    withdraw()


def autoload() -> None:
    """The entry point that torch calls at the end of its own import; does nothing unless a back end was asked for."""
    if os.environ.get("FLAGOS_DEVICE_BACKEND") or os.environ.get("FLAGOS_SHIM_REHEARSE"):
        install()


def torch_is_importing() -> bool:
    """True while this thread is importing torch: then its entry point brought us here, and nobody has asked.

    Another thread's import of torch is waited for.
    """
    torch = sys.modules.get("torch")
    if torch is None or not importing(torch):
        return False
    import importlib

    return importing(importlib.import_module("torch"))
