"""Legacy storages and tensor types: ``torch.<name>.FloatStorage``, ``torch.<name>.FloatTensor`` and their kin."""

from __future__ import annotations

from typing import Any

import torch
from torch.storage import _LegacyStorage

from ._vendor import VENDOR

_DTYPES = {
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Short": torch.int16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Float": torch.float32,
    "Double": torch.float64,
    "Bool": torch.bool,
    "ComplexFloat": torch.complex64,
    "ComplexDouble": torch.complex128,
}


class _LegacyType(type):
    """A legacy tensor type: builds as ``torch.FloatTensor`` does, and knows its tensors."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, torch.Tensor) and instance.device.type == VENDOR.name and instance.dtype == cls.dtype
        )

    def __call__(cls, *args: Any, device: Any = VENDOR.name) -> Any:
        if len(args) == 1 and isinstance(args[0], torch.Size):
            args = tuple(args[0])
        if len(args) == 1 and not isinstance(args[0], int):
            return torch.tensor(args[0], dtype=cls.dtype, device=device)
        return torch.empty(args or (0,), dtype=cls.dtype, device=device)


def _storage(name: str, dtype: torch.dtype) -> type:
    def of_dtype(cls: type) -> torch.dtype:
        return dtype

    body = {
        "__module__": __name__,
        "_dtype": torch._utils.classproperty(of_dtype),
        "dtype": torch._utils.classproperty(of_dtype),
    }
    return type(name, (_LegacyStorage,), body)


__all__ = []
for _name, _dtype in _DTYPES.items():
    globals()[f"{_name}Storage"] = _storage(f"{_name}Storage", _dtype)
    __all__.append(f"{_name}Storage")
    if not _name.startswith("Complex"):
        globals()[f"{_name}Tensor"] = _LegacyType(
            f"{_name}Tensor", (), {"dtype": _dtype, "__module__": f"torch.{VENDOR.name}"}
        )
        __all__.append(f"{_name}Tensor")
