"""Tables that torch keys by function: while a stand-in is in place, it has the entry of what it stands in for.

A table filled before activation knows only torch's own functions, one filled meanwhile only the stand-ins, so entries
are added on the way in, and on the way out every stand-in's entry goes back to torch's own function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0] + "."


def stand_ins(prefix: str = "torch") -> Iterator[tuple[Any, Any]]:
    """Every ``(original, stand-in)`` in torch's modules as they are now, and in the classes that have patched methods.

    Args:
        prefix: the modules to look through are this one and those below it.
    """
    import torch

    places: list[Any] = [torch.Tensor, torch.Tensor.__base__, torch.nn.Module, torch._C._VariableFunctionsClass]
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and (name == prefix or name.startswith(prefix + ".")):
            places.append(module)
    # By the globals that a function has, one step for each name: looking at every function's module takes far longer.
    ours = {id(vars(m)) for name, m in list(sys.modules.items()) if name.startswith(_PACKAGE) and m is not None}
    seen = set()
    for place in places:
        for value in [v for v in list(vars(place).values()) if type(v) is FunctionType and id(v.__globals__) in ours]:
            if id(value) not in seen and hasattr(value, "__wrapped__"):
                seen.add(id(value))
                original = value.__wrapped__
                yield original, value
                if hasattr(original, "cache_info"):  # dynamo looks through a memoised function
                    yield original.__wrapped__, value


def behind(function: Any) -> Any:
    """What a stand-in stands for; anything else as it is."""
    ours = type(function) is FunctionType and str(function.__globals__.get("__name__")).startswith(_PACKAGE)
    return getattr(function, "__wrapped__", function) if ours else function


def once_built(function: Any) -> Callable[[], Any]:
    """Read the table that a memoised function returns, or None as long as nobody has asked for it."""
    return lambda: function() if function.cache_info().currsize else None


class Twins:
    """Entries for stand-ins in one table; an installer in the sense of ``Surface.install``."""

    def __init__(self, read: Callable[[], Any], key: Callable[[Any], Any] = lambda function: function) -> None:
        """Args: read: returns the dict, set or list, or None while there is none; key: what it is keyed by."""
        self._read = read
        self._key = key
        self._pairs: list[tuple[Any, Any]] = []

    def install(self) -> None:
        """Give each stand-in the entry of its original."""
        self._pairs = list(stand_ins())
        table = self._read()
        if table is not None:
            for original, new in self._pairs:
                self._copy(table, self._key(original), self._key(new))

    def covered(self) -> bool:
        """Entries of others do not stand in the way of taking ours back."""
        return False

    def restore(self) -> None:
        """Take the entries of stand-ins away, leaving what torch would have had without them."""
        table = self._read()
        if table is not None:
            for original, new in self._pairs:
                self._copy(table, self._key(new), self._key(original))
                self._drop(table, self._key(new))
        self._pairs.clear()

    @staticmethod
    def _copy(table: Any, source: Any, target: Any) -> None:
        if source not in table or target in table:
            return
        if isinstance(table, dict):
            table[target] = table[source]
        elif isinstance(table, list):
            table.append(target)
        else:
            table.add(target)

    @staticmethod
    def _drop(table: Any, key: Any) -> None:
        if key in table:
            if isinstance(table, dict):
                del table[key]
            else:
                table.remove(key)
