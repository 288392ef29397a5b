"""``torch.fx``, ``torch.export``: graphs, their text and their files name ``cuda``, as the program did."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface

codegen = Surface("fx", after="torch.fx.graph")


@codegen.provide("torch.fx.graph:repr")
def device_repr(ctx: Context, _original: Any) -> Any:
    """A device in generated code is written `device(type='cuda')`, the same text as on CUDA."""
    import torch

    device_class = torch.device

    def written(value: Any) -> str:
        if value.__class__ is device_class and ctx.active and ctx.owns(value):
            return "device(type='cuda')" if value.index is None else f"device(type='cuda', index={value.index})"
        return repr(value)

    return written


export = Surface("export", after="torch._export.serde.schema")


@export.wrap("torch._export.serde.schema:Device.__init__")
def exported_device(ctx: Context, original: Any) -> Any:
    """A saved program says `cuda`, so that it loads on CUDA and on any vendor's device."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def __init__(self: Any, type: str, *args: Any, **kwargs: Any) -> None:
        original(self, "cuda" if type == ctx.device_type else type, *args, **kwargs)

    return __init__


surface = (codegen, export)
