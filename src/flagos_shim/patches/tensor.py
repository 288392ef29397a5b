"""``torch.Tensor``: the methods and properties through which a program names a device."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface
from .factories import translate_device

surface = Surface("tensor")

_ABSENT: Any = object()


@surface.wrap("torch:Tensor.to")
def to(ctx: Context, original: Any) -> Any:
    """`x.to("cuda")`: the vendor's device, at the first position or by keyword."""
    import torch

    devices, translate, device_class, dtype_class = ctx.devices, ctx.translate, torch.device, torch.dtype
    overridden = torch._C._has_torch_function_unary

    # `Module.to` gives three arguments by position for every parameter; passing them on one by one saves a tuple.
    def to(
        self: Any, target: Any = _ABSENT, second: Any = _ABSENT, third: Any = _ABSENT, /, *rest: Any, **kwargs: Any
    ) -> Any:
        kind = target.__class__
        if kind is str:
            if not overridden(self):  # __torch_function__ sees what the program wrote, and calls us again
                target = devices[target]
        elif kind is not dtype_class and kind is not device_class and target is not None:
            if target is _ABSENT:
                if "device" in kwargs:
                    device = kwargs["device"]
                    if device.__class__ is str:
                        if not overridden(self):
                            kwargs["device"] = devices[device]
                    elif device.__class__ is not device_class:
                        kwargs["device"] = translate(device)
                return original(self, **kwargs)
            target = translate(target)
        if second is _ABSENT:
            if kwargs:
                return original(self, target, **kwargs)
            return original(self, target)
        if third is _ABSENT:
            return original(self, target, second, **kwargs)
        if kwargs or rest:
            return original(self, target, second, third, *rest, **kwargs)
        return original(self, target, second, third)

    return to


@surface.wrap("torch:Tensor.cuda")
def cuda(ctx: Context, original: Any) -> Any:
    """`x.cuda()`: a copy on the vendor's device."""
    import torch
    from torch.overrides import handle_torch_function, has_torch_function_unary

    preserve = torch.preserve_format
    move = torch.Tensor.__base__.to
    if ctx.vendor.identity:

        def identity(self: Any, device: Any = None, *rest: Any, **kwargs: Any) -> Any:
            return original(self, ctx.translate(device), *rest, **kwargs)

        return identity

    current = ctx.make_device(None)

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = preserve) -> Any:
        if not ctx.active:
            return original(self, device, non_blocking, memory_format=memory_format)
        if has_torch_function_unary(self):  # __torch_function__ sees what the program wrote
            given = (device, non_blocking) if non_blocking else () if device is None else (device,)
            formats = {} if memory_format is preserve else {"memory_format": memory_format}
            return handle_torch_function(torch.Tensor.cuda, (self,), self, *given, **formats)
        if device is None:
            place = current
        else:
            place = ctx.make_device(device) if device.__class__ is int else ctx.accelerator(device)
        if non_blocking is False and memory_format is preserve:
            return move(self, place)
        return move(self, place, non_blocking=non_blocking, memory_format=memory_format)

    return cuda


for _name in ("new", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"):
    surface.wrap(f"torch:Tensor.{_name}")(translate_device)


@surface.wrap("torch:Tensor.pin_memory")
def pin_memory(ctx: Context, original: Any) -> Any:
    """`x.pin_memory("cuda")`: pinned for the vendor's device; a plain copy where that is the CPU."""
    if not ctx.vendor.indexed:

        def copied(self: Any, device: Any = None) -> Any:
            if not ctx.active:
                return original(self) if device is None else original(self, device)
            return self.clone()

        return copied

    def pin_memory(self: Any, device: Any = None) -> Any:
        return original(self) if device is None else original(self, ctx.translate(device))

    return pin_memory


@surface.wrap("torch:Tensor.is_pinned")
def is_pinned(ctx: Context, original: Any) -> Any:
    """`x.is_pinned("cuda")`: pinned for the vendor's device; never where that is the CPU."""
    if not ctx.vendor.indexed:

        def never(self: Any, device: Any = None) -> Any:
            if not ctx.active:
                return original(self) if device is None else original(self, device)
            return False

        return never

    def is_pinned(self: Any, device: Any = None) -> Any:
        return original(self) if device is None else original(self, ctx.translate(device))

    return is_pinned


@surface.replace("torch:Tensor.is_cuda")
def is_cuda(ctx: Context, original: Any) -> Any:
    """`x.is_cuda` is true on the vendor's device."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    import torch
    from torch.overrides import handle_torch_function, has_torch_function_unary

    kinds, kind = ctx.kinds, ctx.device_type

    def is_cuda(self: Any) -> bool:
        """Is ``True`` if the Tensor is stored on the GPU, ``False`` otherwise."""
        if has_torch_function_unary(self):
            return bool(handle_torch_function(torch.Tensor.is_cuda.__get__, (self,), self))
        return kinds[self.device] == kind

    return property(is_cuda)


@surface.replace("torch:Tensor.__cuda_array_interface__")
def cuda_array_interface(ctx: Context, original: Any) -> Any:
    """Absent on the vendor's device, so that CuPy and Numba do not take its address for one of CUDA's."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def __cuda_array_interface__(self: Any) -> Any:
        """Array view description for CUDA tensors."""
        if ctx.owns(self.device):
            raise AttributeError(
                f"Can't get __cuda_array_interface__ of a tensor on {self.device}: its memory is not CUDA's. "
                "Use tensor.cpu(), or DLPack."
            )
        return original.__get__(self)

    return property(__cuda_array_interface__)


@surface.wrap("torch:Tensor.__dlpack_device__")
def dlpack_device(ctx: Context, original: Any) -> Any:
    """A tensor on the vendor's device says of itself, in DLPack's terms, that it is on an extension device."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original
    from torch.utils.dlpack import DLDeviceType

    def __dlpack_device__(self: Any) -> Any:
        return (DLDeviceType.kDLExtDev, self.get_device()) if ctx.owns(self.device) else original(self)

    return __dlpack_device__


@surface.wrap("torch._C:_nn._parse_to")
def parse_to(ctx: Context, original: Any) -> Any:
    """`module.to("cuda")`: torch reads the arguments of `Module.to` here."""
    import torch

    devices, translate, device_class = ctx.devices, ctx.translate, torch.device

    def _parse_to(*args: Any, **kwargs: Any) -> Any:
        if args:
            first = args[0]
            if first.__class__ is str:
                args = (devices[first], *args[1:]) if len(args) > 1 else (devices[first],)
            elif first.__class__ is not device_class:
                args = (translate(first), *args[1:])
        if not kwargs:
            return original(*args)
        if "device" in kwargs:
            kwargs["device"] = translate(kwargs["device"])
        return original(*args, **kwargs)

    return _parse_to
