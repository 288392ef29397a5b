"""Run a function once, when a module has been imported; cancellable, and without importing anything itself.

wrapt has post-import hooks, but they cannot be cancelled, and importing wrapt would be felt by an interpreter that
never imports torch.  The finder stands in ``sys.meta_path`` only while somebody waits for a module.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Callable, Optional

Callback = Callable[[ModuleType], None]

_lock = threading.RLock()
_waiting: dict[str, list[tuple[Optional[Callback], Callback]]] = {}


class _Loader(importlib.abc.Loader):
    """The module's own loader, and afterwards the callbacks; then out of the way for good."""

    def __init__(self, name: str, loader: importlib.abc.Loader) -> None:
        self.name = name
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _lock:
            callbacks = _waiting.pop(self.name, [])
            _withdraw_when_idle()
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        for before, _ in callbacks:
            if before is not None:
                before(module)
        self.loader.exec_module(module)
        for _, after in callbacks:
            after(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self._looking = threading.local()

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> (
        importlib.machinery.ModuleSpec | None
    ):
        if name not in _waiting or getattr(self._looking, "name", None) == name:
            return None
        self._looking.name = name
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.name = None
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(name, spec.loader)
        return spec


_finder = _Finder()


def _withdraw_when_idle() -> None:
    if not _waiting and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def when_imported(name: str, after: Callback, before: Callback | None = None) -> Callable[[], None]:
    """Call ``after(module)`` as soon as ``name`` has been imported: at once where that is the case already.

    Args:
        name: absolute name of the module.
        after: called with the module when its own code has run.
        before: called with the still empty module just before its own code runs; not called where it has run.

    Returns:
        A function that cancels the wait; harmless when the callback has already run.
    """
    with _lock:
        module = sys.modules.get(name)
        ready = module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)
        if not ready:
            entry = (before, after)
            _waiting.setdefault(name, []).append(entry)
            if _finder not in sys.meta_path:
                sys.meta_path.insert(0, _finder)
    if ready:
        assert module is not None
        after(module)
        return lambda: None

    def cancel() -> None:
        with _lock:
            if entry in _waiting.get(name, ()):
                _waiting[name].remove(entry)
                if not _waiting[name]:
                    del _waiting[name]
                _withdraw_when_idle()

    return cancel
