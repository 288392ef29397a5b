"""``torch.compile``: dynamo traces the program as it runs without it, with the same branches and no graph break.

Dynamo knows torch's functions by identity and reads attributes in its own frames.  So its tables learn the stand-ins,
and the two answers that depend on who asks (``x.is_cuda``, ``x.device.type``) follow the code that is being traced.
"""

from __future__ import annotations

import sys
from typing import Any

from .._context import Context
from .._device_type import DeviceType, TracedDeviceType, torch_is_traced
from .._patching import Surface
from .._twins import Twins, once_built

surface = Surface("compile", after="torch._dynamo")
surface.forget(
    "torch._dynamo.trace_rules:clear_lru_cache",
    "torch._dynamo.variables.torch:get_overridable_functions.cache_clear",
    "torch._dynamo.variables.user_defined:UserDefinedClassVariable._in_graph_classes.cache_clear",
    "flagos_shim.patches.compile:forget_code",
)

_CONSTANT = "torch._dynamo.variables.constant:ConstantVariable"
_TABLES = (
    "torch._dynamo.variables.torch:constant_fold_functions",
    "torch._dynamo.variables.torch:constant_fold_functions_need_guards",
    "torch._library.utils:_RANDOM_FUNCTIONS",
)


def forget_code() -> None:
    """Have functions compiled under the other meaning of `cuda` traced again at their next call."""
    reset = getattr(sys.modules.get("torch._dynamo"), "reset_code_caches", None)
    if reset is not None:
        reset()


def _table(_ctx: Context, original: Any) -> Twins:
    """Dynamo treats a stand-in as it treats torch's own function."""
    return Twins(lambda: original)


for _target in _TABLES:
    surface.install(_target, optional=True)(_table)


@surface.install("torch._dynamo.variables.torch:TorchInGraphFunctionVariable._get_handlers", optional=True)
def handlers(_ctx: Context, original: Any) -> Twins:
    """What dynamo does in a way of its own, it also does for a stand-in."""
    return Twins(original)


@surface.install("torch._dynamo.variables.torch:tracing_state_functions", optional=True)
def tracing_state(_ctx: Context, original: Any) -> Twins:
    """Dynamo answers for the stand-ins of functions that ask whether something is traced."""
    return Twins(once_built(original) if callable(original) else lambda: original)


@surface.install("torch._dynamo.allowed_functions:_allowed_function_ids", optional=True)
def allowed(_ctx: Context, original: Any) -> Twins:
    """What dynamo of torch 2.1 and 2.2 may put into a graph are the same functions under the shim."""
    return Twins(lambda: original.function_ids, key=id)


@surface.install("torch._dynamo.allowed_functions:_allowed_function_ids", optional=True)
def allowed_names(_ctx: Context, original: Any) -> Twins:
    """And they go by the same names."""
    return Twins(lambda: original.function_names, key=id)


@surface.enrol("torch._dynamo.utils:common_constant_types", optional=True)
def device_type_is_constant(_ctx: Context, _original: Any) -> type:
    """A device type that the program keeps in a variable is a constant, like a string."""
    return DeviceType


@surface.enrol("torch._dynamo.utils:common_constant_types", optional=True)
def traced_device_type_is_constant(_ctx: Context, _original: Any) -> type:
    """A device type that traced code reads is a constant, like a string."""
    return TracedDeviceType


@surface.enrol("torch._dynamo.utils:common_constant_types", optional=True)
def properties_are_constant(_ctx: Context, _original: Any) -> type:
    """The properties of a device are a constant."""
    import torch

    kind: type = torch.cuda._CudaDeviceProperties
    return kind


@surface.wrap(f"{_CONSTANT}.const_getattr")
def const_getattr(ctx: Context, original: Any) -> Any:
    """`x.device.type` equals "cuda" in the traced program, as it does outside, and is plain in torch's own code."""
    import torch

    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original
    device_class = torch.device

    def const_getattr(self: Any, tx: Any, name: str) -> Any:
        member = original(self, tx, name)
        if name == "type" and self.value.__class__ is device_class and member == ctx.device_type:
            return str.__str__(member) if torch_is_traced(tx) else TracedDeviceType(member)
        return member

    return const_getattr


@surface.wrap(f"{_CONSTANT}.__init__")
def construct(ctx: Context, original: Any) -> Any:
    """A device type that the program read before it was compiled compares like one read inside."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def __init__(self: Any, value: Any, **kwargs: Any) -> None:
        original(self, TracedDeviceType(value) if value.__class__ is DeviceType else value, **kwargs)

    return __init__


@surface.wrap("torch._dynamo.codegen:PyCodegen.create_load_const")
def create_load_const(ctx: Context, original: Any) -> Any:
    """A device type that leaves the compiled code is what it would be without the compiler."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def create_load_const(self: Any, value: Any) -> Any:
        return original(self, DeviceType(value) if value.__class__ is TracedDeviceType else value)

    return create_load_const


@surface.wrap("torch._dynamo.variables.tensor:TensorVariable.method_attr_is_cuda", optional=True)
def is_cuda(ctx: Context, original: Any) -> Any:
    """`x.is_cuda` takes the same branch compiled as it does in eager mode."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def method_attr_is_cuda(self: Any, tx: Any) -> Any:
        if self.device is None or not ctx.active:
            return original(self, tx)
        from torch._dynamo.variables.constant import ConstantVariable

        return ConstantVariable.create(bool(self.device.type == ctx.device_type))

    return method_attr_is_cuda


@surface.enrol("torch._dynamo.variables.torch:constant_fold_functions")
def device_count(_ctx: Context, table: Any) -> Any:
    """The number of devices does not change while a program runs, so asking for it breaks no graph."""
    import torch

    return (torch.cuda.device_count, None) if isinstance(table, dict) else torch.cuda.device_count


@surface.enrol("torch._dynamo.variables.torch:constant_fold_functions")
def device(_ctx: Context, table: Any) -> Any:
    """A device that is made is a constant, also where a plugin sends its type another way (torch_npu for torch 2.4)."""
    import torch

    return (torch._C.device, None) if isinstance(table, dict) else torch._C.device
