"""Finding what a patch's target names, and making a stand-in look like it.  Nothing of torch's is changed here."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from typing import Any


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


def resolve(target: str) -> tuple[Any, str, Any, Any]:
    """Find a target ("module:qualified.name") without binding it, as ``wrapt.resolve_path`` does.

    Returns:
        ``(owner, name, what the owner itself holds or MISSING, the original object or MISSING)``; a static method is
        unwrapped, a name inherited from a base class is found there.

    Raises:
        ImportError, AttributeError: the module, or the owner inside it, is not there.
    """
    import wrapt  # not at the top: a process that only waits for torch does without it

    module_name, _, path = target.partition(":")
    parents, _, name = path.rpartition(".")
    owner: Any = importlib.import_module(module_name)
    if parents:
        owner = wrapt.resolve_path(owner, parents)[2]
    try:
        original = wrapt.resolve_path(owner, name)[2]
    except AttributeError:
        original = MISSING
    own = vars(owner).get(name, MISSING)
    return owner, name, own, original.__func__ if isinstance(original, staticmethod) else original


def dress(new: Any, original: Any, target: str) -> None:
    """Give a stand-in the original's names, so that it pickles, prints and documents itself as torch's.

    A builtin's own qualified name does not lead back to it (``_VariableFunctionsClass.zeros``), so it gets the
    target's.  ``__wrapped__`` lets ``inspect.signature`` answer as for the original, also where that is an error.
    """
    module_name, _, path = target.partition(":")
    python = hasattr(original, "__code__")
    new.__module__ = original.__module__ if python else module_name
    new.__qualname__ = original.__qualname__ if python else path
    new.__name__ = path.rpartition(".")[2] if not python else original.__name__
    new.__doc__ = original.__doc__
    new.__annotations__ = getattr(original, "__annotations__", {})
    new.__wrapped__ = original


def forget(targets: Iterable[str]) -> None:
    """Call the named functions ("module:function"), as far as their modules have been imported."""
    for target in targets:
        module_name, _, path = target.partition(":")
        module: Any = sys.modules.get(module_name)
        if module is not None:
            functools.reduce(lambda o, n: getattr(o, n, lambda: None), path.split("."), module)()


class Enrolment:
    """An item in a container of torch's: first in a list, or in a set, or a ``(key, value)`` pair in a dict."""

    def __init__(self, container: Any, item: Any) -> None:
        self._container = container
        self._item = item
        self._key, self._value = item if isinstance(container, dict) else (item, item)
        self._found = MISSING
        if isinstance(container, dict):
            self._found = container.get(self._key, MISSING)
        elif isinstance(container, set) and item in container:
            self._found = item

    def install(self) -> None:
        if isinstance(self._container, dict):
            self._container[self._key] = self._value
        elif isinstance(self._container, list):
            self._container.insert(0, self._item)
        else:
            self._container.add(self._item)

    def covered(self) -> bool:
        if isinstance(self._container, dict):
            return self._container.get(self._key, MISSING) is not self._value
        return self._item not in self._container

    def restore(self) -> None:
        if isinstance(self._container, dict):
            if self._found is MISSING:
                del self._container[self._key]
            else:
                self._container[self._key] = self._found
        elif self._found is MISSING:
            self._container.remove(self._item)
