"""What ``x.device.type`` is on a routed device: the vendor's name, which also equals "cuda".

Libraries decide by ``x.device.type == "cuda"`` whether they may use the accelerator; torch and the plugin decide by the
true name which code to run.  So the answer depends on who asks: the module of the comparing frame.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_CUDA = "cuda"
_CUDA_HASH = hash(_CUDA)

# Top-level packages whose code is to see the plain name; the vendor's are added while it is active.
internal: set[str] = {"torch", "flagos_shim"}


def is_internal(frame: FrameType) -> bool:
    """True where the code of ``frame`` belongs to torch, to the plugin or to this package."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] in internal


class DeviceType(str):
    """A device type such as "npu" that, outside torch's own code, also equals "cuda" and hashes like it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        same = str.__eq__(self, other)
        if same is True:
            return True
        if str.__eq__(_CUDA, other) is True:  # type: ignore[arg-type]
            return not is_internal(sys._getframe(1))
        return same

    def __ne__(self, other: object) -> bool:
        different = str.__ne__(self, other)
        if different is True and str.__eq__(_CUDA, other) is True:  # type: ignore[arg-type]
            return is_internal(sys._getframe(1))
        return different

    def __hash__(self) -> int:
        return str.__hash__(self) if is_internal(sys._getframe(1)) else _CUDA_HASH

    def __copy__(self) -> DeviceType:
        return self

    def __deepcopy__(self, memo: Any) -> DeviceType:
        return self

    def __reduce__(self) -> Any:
        return str, (_CUDA,)


class TracedDeviceType(DeviceType):
    """The same inside a compiler's trace of the program's code, where the comparing frame is the compiler's."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or str.__eq__(_CUDA, other) is True  # type: ignore[arg-type]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return _CUDA_HASH
