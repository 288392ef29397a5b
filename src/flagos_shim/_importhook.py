"""Calls back when a module has been imported; cancellable, and without importing anything itself.

wrapt has post-import hooks, but they cannot be cancelled, and importing wrapt would be felt by an interpreter that
never imports torch.  The finder stands in ``sys.meta_path`` only while somebody waits for a module.
"""

from __future__ import annotations

import sys
from _thread import RLock, get_ident  # what `threading` is made of, which would be felt

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` and `importlib.abc` would be felt by an interpreter that never imports torch
    from contextlib import AbstractContextManager
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable

    Callback = Callable[[ModuleType], None]
    During = Callable[[], AbstractContextManager[None]]


class _Wait:
    """One request: what is to be in force while the module's code runs, and what to call afterwards."""

    def __init__(self, after: Callback, during: During | None) -> None:
        self.after = after
        self.during = during


_lock = RLock()
_waiting: dict[str, list[_Wait]] = {}
_first: dict[str, str] = {}


class _Wrapped:
    """A module's own loader with something beside it; out of the way for good as soon as the module has been imported.

    Until then a program may ask it (``importlib.util.find_spec("torch").loader``) for whatever the own one can do.
    """

    def __init__(self, name: str, loader: Any) -> None:
        self._name = name
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # a copy that is being made
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def _step_aside(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader


class _Loader(_Wrapped):
    """The module's own loader, and afterwards the callbacks."""

    def exec_module(self, module: ModuleType) -> None:
        with _lock:
            waits = _waiting.pop(self._name, [])
            _withdraw_when_idle()
        self._step_aside(module)
        try:
            self._execute(module, waits)
        except BaseException:
            # A program that survives a failed import and tries again must not then get torch untouched.
            with _lock:
                _waiting.setdefault(self._name, [])[:0] = waits
                _stand_by()
            raise

    def _execute(self, module: ModuleType, waits: list[_Wait]) -> None:
        import contextlib

        with contextlib.ExitStack() as stack:
            for wait in waits:
                if wait.during is not None:
                    stack.enter_context(wait.during())
            self._loader.exec_module(module)
        for wait in waits:
            wait.after(module)


class _AfterAnother(_Wrapped):
    """Imports another module first; what waits for that may import this one along, which must not run twice then."""

    def __init__(self, name: str, loader: Any, first: str) -> None:
        super().__init__(name, loader)
        self._first = first
        self._brought_along: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        import importlib

        # Here and not in `exec_module`: by then an empty module would stand where the other's import looks for this.
        importlib.import_module(self._first)
        module = sys.modules.get(self._name)
        if module is None:
            return super().create_module(spec)
        self._brought_along = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if self._brought_along is not None:
            module.__spec__ = self._brought_along
            return
        self._step_aside(module)
        self._loader.exec_module(module)
        with _lock:
            _first.pop(self._name, None)
            _withdraw_when_idle()


class _Finder:
    """Finds what everybody else finds, and puts a loader around it: a program that only asks imports nothing."""

    def __init__(self) -> None:
        self._looking: set[tuple[int, str]] = set()

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Called by the import system; None for every module that nobody waits for."""
        asked = (get_ident(), name)
        first = _first.get(name)
        if (first is None and name not in _waiting) or asked in self._looking:
            return None
        import importlib.util

        self._looking.add(asked)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.discard(asked)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            if name in _waiting:
                spec.loader = _Loader(name, spec.loader)  # type: ignore[assignment]
            if first is not None:
                spec.loader = _AfterAnother(name, spec.loader, first)  # type: ignore[assignment]
        return spec


_finder = _Finder()


def _stand_by() -> None:
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _withdraw_when_idle() -> None:
    # A new list: another thread may be going through the old one, and would miss a finder if that shrank.
    if not _waiting and not _first and _finder in sys.meta_path:
        sys.meta_path = [finder for finder in sys.meta_path if finder is not _finder]


def importing(module: ModuleType) -> bool:
    """True while the module's own code is still running."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def when_imported(name: str, after: Callback, during: During | None = None) -> Callable[[], None]:
    """Call ``after(module)`` as soon as ``name`` has been imported: at once where that is the case already.

    Where another thread is importing it, this waits for that; where this very thread is, nothing can be told of the
    end, and the call is made at once.  An ``after`` that raises makes the import fail, and stays for the next attempt.

    Args:
        name: absolute name of the module.
        after: called with the module when its own code has run.
        during: a context manager to be in force while its own code runs; unused where it has run.

    Returns:
        A function that cancels the wait; harmless when the callback has already run.
    """
    wait = _Wait(after, during)
    with _lock:
        module = sys.modules.get(name)
        if module is None:
            _waiting.setdefault(name, []).append(wait)
            _stand_by()
    if module is not None:
        if importing(module):
            import importlib

            module = importlib.import_module(name)
        after(module)
        return lambda: None

    def cancel() -> None:
        with _lock:
            waits = _waiting.get(name, [])
            if wait in waits:
                waits.remove(wait)
            if not waits:
                _waiting.pop(name, None)
            _withdraw_when_idle()

    return cancel


def import_first(name: str, first: str) -> Callable[[], None]:
    """Have ``first`` imported completely before ``name``, where a program asks for ``name`` first.

    Returns:
        A function that cancels this.
    """
    with _lock:
        if name not in sys.modules:
            _first[name] = first
            _stand_by()

    def cancel() -> None:
        with _lock:
            _first.pop(name, None)
            _withdraw_when_idle()

    return cancel
