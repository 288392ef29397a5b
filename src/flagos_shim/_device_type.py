"""Names that answer to two: ``x.device.type`` is the vendor's and equals "cuda", ``get_backend()`` likewise "nccl".

Programs and libraries decide by ``x.device.type == "cuda"`` whether they may use the accelerator; torch and the plugin
decide by the true name which code to run.  So the answer depends on who asks: the module of the comparing frame.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

# Top-level packages whose code is to see the plain name; the vendor's are added while it is active.
internal: set[str] = {"torch", "flagos_shim"}


def is_internal(frame: FrameType) -> bool:
    """True where the code of ``frame`` belongs to torch, to the plugin or to this package."""
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and name.partition(".")[0] in internal


class RoutedName(str):
    """A vendor's name that, outside torch's own code, also equals CUDA's name for the same and hashes like it."""

    __slots__ = ()
    alias = ""

    def __eq__(self, other: object) -> bool:
        same = str.__eq__(self, other)
        if same is True:
            return True
        if other.__class__ is str and other == self.alias:
            return not is_internal(sys._getframe(1))
        return same

    def __ne__(self, other: object) -> bool:
        different = str.__ne__(self, other)
        if different is True and other.__class__ is str and other == self.alias:
            return is_internal(sys._getframe(1))
        return different

    def __hash__(self) -> int:
        return str.__hash__(self) if is_internal(sys._getframe(1)) else str.__hash__(self.alias)

    def __copy__(self) -> RoutedName:
        return self

    def __deepcopy__(self, memo: Any) -> RoutedName:
        return self

    def __reduce__(self) -> Any:
        return str, (self.alias,)


class DeviceType(RoutedName):
    """A device type such as "npu" that also equals "cuda"."""

    __slots__ = ()
    alias = "cuda"


class CollectiveName(RoutedName):
    """A collective back end such as "hccl" that also equals "nccl"."""

    __slots__ = ()
    alias = "nccl"


class TracedDeviceType(DeviceType):
    """The same inside a compiler's trace of the program's code, where the comparing frame is the compiler's."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or (isinstance(other, str) and str.__eq__(other, self.alias))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self.alias)
