"""``torch.fx``, ``torch.export``: graphs, their text and their files name ``cuda``, as the program did."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from .._context import Context
from .._patching import Surface
from .._twins import behind

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


@codegen.wrap("torch.fx.node:_format_arg", optional=True)
def printed(ctx: Context, original: Any) -> Any:
    """A device in a printed graph is `cuda`; ONNX files keep these lines with each of their nodes."""
    import torch

    device_class = torch.device

    def _format_arg(arg: Any, *args: Any, **kwargs: Any) -> Any:
        if arg.__class__ is device_class and ctx.active and ctx.owns(arg):
            return "cuda" if arg.index is None else f"cuda:{arg.index}"
        return original(arg, *args, **kwargs)

    return _format_arg


schemas = Surface("fx_schemas", after="torch.fx.operator_schemas")


@schemas.wrap(
    "torch.fx.operator_schemas:normalize_function",
    also=("torch.fx.experimental.normalize:normalize_function", "torch.fx.proxy:normalize_function"),
)
def normalize_function(_ctx: Context, original: Any) -> Any:
    """The arguments of `torch.zeros_like` in a graph are found in its schema, which torch does for builtins only."""

    def normalize_function(target: Any, *args: Any, **kwargs: Any) -> Any:
        plain = behind(target)
        return original(plain if isinstance(plain, BuiltinFunctionType) else target, *args, **kwargs)

    return normalize_function


export = Surface("export", after="torch._export.serde.schema")


@export.wrap("torch._export.serde.schema:Device.__init__")
def exported_device(ctx: Context, original: Any) -> Any:
    """A saved program says `cuda`, so that it loads on CUDA and on any vendor's device."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def __init__(self: Any, type: str, *args: Any, **kwargs: Any) -> None:
        original(self, "cuda" if type == ctx.device_type else type, *args, **kwargs)

    return __init__


surface = (codegen, schemas, export)
