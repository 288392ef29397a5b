"""Storages, untyped and typed: where they are made and what they say of their device."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface

surface = Surface("storage")


@surface.replace("torch:UntypedStorage.__new__")
def new(ctx: Context, original: Any) -> Any:
    """`torch.UntypedStorage(n, device="cuda")`: memory of the vendor's device."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = ctx.translate(kwargs["device"])
        return original(cls, *args, **kwargs)

    return staticmethod(__new__)


@surface.wrap("torch:TypedStorage.type")
def type_(ctx: Context, original: Any) -> Any:
    """`storage.type()` says `torch.cuda.FloatStorage` on the vendor's device."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
        result = original(self, dtype, non_blocking)
        if isinstance(result, str) and ctx.owns(self.device):
            return "torch.cuda." + result.rpartition(".")[2]
        return result

    return type


@surface.replace("torch:UntypedStorage.is_cuda")
@surface.replace("torch:TypedStorage.is_cuda")
def is_cuda(ctx: Context, original: Any) -> Any:
    """`storage.is_cuda` is true on the vendor's device."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def is_cuda(self: Any) -> bool:
        """Whether the storage is on the accelerator."""
        return bool(self.device.type == ctx.device_type)

    return property(is_cuda)
