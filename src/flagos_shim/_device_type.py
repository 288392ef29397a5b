"""Names that answer to two: ``x.device.type`` is the vendor's and equals "cuda", ``get_backend()`` likewise "nccl".

Programs and libraries decide by ``x.device.type == "cuda"`` whether they may use the accelerator; torch and the plugin
decide by the true name which code to run.  So the answer depends on who asks: the module of the comparing frame.
"""

from __future__ import annotations

import codecs
import functools
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any


class _Modules(dict[Any, bool]):
    """From the name of a module to whether its code is to see the plain name; found out once for each."""

    def __init__(self, packages: set[str]) -> None:
        super().__init__()
        self._packages = packages

    def __missing__(self, name: Any) -> bool:
        found = isinstance(name, str) and name.partition(".")[0] in self._packages
        if len(self) < 8192:  # a program may make up modules without end
            self[name] = found
        return found


class Insiders(set[str]):
    """Top-level packages whose code is to see the plain name; the vendor's are added when it is activated, for good."""

    def __init__(self, *packages: str) -> None:
        super().__init__(packages)
        self.modules = _Modules(self)

    def update(self, *packages: Iterable[str]) -> None:
        """Add packages, and forget what was found out about modules."""
        super().update(*packages)
        self.modules.clear()


internal = Insiders("torch", "flagos_shim")
_modules = internal.modules


def is_internal(frame: FrameType) -> bool:
    """True where the code of ``frame`` belongs to torch, to the plugin or to this package."""
    return _modules[frame.f_globals.get("__name__")]


class RoutedName(str):
    """A vendor's name that, outside torch's own code, also equals CUDA's name for the same and hashes like it."""

    __slots__ = ()
    alias = ""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and str.__eq__(other, self.alias):
            return not _modules[sys._getframe(1).f_globals.get("__name__")]
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        if isinstance(other, str) and str.__eq__(other, self.alias):
            return _modules[sys._getframe(1).f_globals.get("__name__")]
        return str.__ne__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self) if is_internal(sys._getframe(1)) else str.__hash__(self.alias)

    def __contains__(self, part: object) -> bool:
        if not isinstance(part, str):
            raise TypeError(f"'in <string>' requires string as left operand, not {type(part).__name__}")
        return str.__contains__(self, part) or (part in self.alias and self._program_asks(sys._getframe(1)))

    def startswith(self, prefix: Any, *bounds: Any) -> bool:
        """As ``str.startswith``, for either name."""
        if str.startswith(self, prefix, *bounds):
            return True
        return self.alias.startswith(prefix, *bounds) and self._program_asks(sys._getframe(1))

    def endswith(self, suffix: Any, *bounds: Any) -> bool:
        """As ``str.endswith``, for either name."""
        if str.endswith(self, suffix, *bounds):
            return True
        return self.alias.endswith(suffix, *bounds) and self._program_asks(sys._getframe(1))

    @staticmethod
    def _program_asks(frame: FrameType) -> bool:
        return not is_internal(frame)

    # What gives the same text again is the same name: `x.device.type.split(":")[0]`.  Only str() and formatting make
    # plain text of it, which torch's own code can then look up.

    def lower(self) -> str:
        """As ``str.lower``."""
        return self._unless(str.lower(self))

    def strip(self, chars: str | None = None, /) -> str:
        """As ``str.strip``."""
        return self._unless(str.strip(self, chars))

    def split(self, sep: str | None = None, maxsplit: Any = -1) -> list[str]:
        """As ``str.split``."""
        return [self._unless(part) for part in str.split(self, sep, maxsplit)]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        """As ``str.partition``."""
        first, found, rest = str.partition(self, sep)
        return self._unless(first), found, rest

    def _unless(self, text: str) -> str:
        """This name, unless ``text`` is another."""
        return self if str.__eq__(self, text) else text

    def __copy__(self) -> RoutedName:
        return self

    def __deepcopy__(self, memo: Any) -> RoutedName:
        return self

    def __reduce__(self) -> Any:
        # A call that gives plain text: of those that do, this is the one that `torch.load(weights_only=True)` allows.
        return codecs.encode, (codecs.encode(self.alias, "rot13"), "rot13")


class DeviceType(RoutedName):
    """A device type such as "npu" that also equals "cuda"."""

    __slots__ = ()
    alias = "cuda"


class CollectiveName(RoutedName):
    """A collective back end such as "hccl" that also equals "nccl"; see ``collective_name`` for lists of them."""

    __slots__ = ()
    alias = "nccl"


def torch_is_traced(tx: Any) -> bool:
    """True where the code that dynamo is tracing belongs to torch or to the plugin.

    Args:
        tx: dynamo's instruction translator.  Its polyfills stand for builtins such as ``in``: the user of those counts.
    """
    name = ""
    while tx is not None:
        name = tx.f_globals.get("__name__") or ""
        if not name.startswith("torch._dynamo"):
            break
        tx = getattr(tx, "parent", None)
    return _modules[name]


class TracedDeviceType(DeviceType):
    """The same while dynamo traces: the comparing frame is dynamo's, and the code that it traces is what asks."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        same = str.__eq__(self, other)
        if same is True:
            return True
        if isinstance(other, str) and str.__eq__(other, self.alias):
            return self._program_asks(sys._getframe(1))
        return same

    def __ne__(self, other: object) -> bool:
        different = str.__ne__(self, other)
        if different is True and isinstance(other, str) and str.__eq__(other, self.alias):
            return not self._program_asks(sys._getframe(1))
        return different

    def __hash__(self) -> int:
        return str.__hash__(self.alias) if self._program_asks(sys._getframe(1)) else str.__hash__(self)

    @staticmethod
    def _program_asks(frame: FrameType) -> bool:
        if str(frame.f_globals.get("__name__")).startswith("torch._dynamo"):
            # Dynamo's functions that evaluate the program's operators are handed the translator under this name.
            return not torch_is_traced(frame.f_locals.get("tx"))
        return not is_internal(frame)


@functools.cache
def collective_name(name: str, alias: str) -> CollectiveName:
    """``name`` as torch knows it ("hccl", "cpu:gloo,npu:hccl"), which also equals what a CUDA program calls it."""
    kind: type[CollectiveName] = type("CollectiveName", (CollectiveName,), {"__slots__": (), "alias": alias})
    return kind(name)
