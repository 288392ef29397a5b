"""``torch.device``: the type stays torch's own; what it constructs, how it pickles, and what ``.type`` answers."""

from __future__ import annotations

import sys
from numbers import Integral
from typing import Any

from .._context import Context
from .._device_type import DeviceType, internal
from .._patching import Surface

surface = Surface("device")


@surface.replace("torch._C:device.type")
def type_(ctx: Context, original: Any) -> Any:
    """`x.device.type == "cuda"` holds in the program's and its libraries' code; torch's own reads the plain name."""
    kinds, kind = ctx.kinds, ctx.device_type
    if not ctx.vendor.indexed or ctx.vendor.identity or kind is None:
        return original
    routed, insiders, getframe = DeviceType(kind), internal.modules, sys._getframe

    def read(device: Any) -> str:
        name = kinds[device]
        if name != kind or insiders[getframe(1).f_globals.get("__name__")]:
            return name
        return routed

    return property(read)


@surface.replace("torch._C:device.__reduce__")
def reduce(ctx: Context, original: Any) -> Any:
    """A pickled device says `cuda`, so that a file written here loads on a machine without the plugin."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def __reduce__(self: Any) -> Any:
        make, args = original(self)
        if args[0] == ctx.device_type:
            args = ("cuda", *args[1:])
        return make, args

    return __reduce__


@surface.wrap("torch:get_device_module", optional=True)
def get_device_module(ctx: Context, original: Any) -> Any:
    """The module of the device in use is `torch.cuda`; only the plain name `npu` gives the plugin's."""
    import torch

    def get_device_module(device: Any = None) -> Any:
        if isinstance(device, str) and str.__str__(device).partition(":")[0] in ctx.aliases:
            return ctx.shown_module
        if ctx.active and ctx.vendor.indexed and device.__class__ is not str:
            found = device
            if device is None:  # torch.accelerator came with torch 2.6
                new = hasattr(torch, "accelerator")
                found = torch.accelerator.current_accelerator() if new else torch._C._get_accelerator()
            if isinstance(found, str):  # what `.type` answered
                found = torch.device(found)
            if isinstance(found, torch.device) and ctx.owns(found):
                return ctx.shown_module
        return original(ctx.device_kind(device))

    return get_device_module


@surface.wrap("torch._C:_accelerator_getAccelerator", optional=True)
def accelerator(ctx: Context, original: Any) -> Any:
    """On the CPU torch itself sees no accelerator, also where it was built for CUDA."""
    if ctx.vendor.indexed:
        return original

    def _accelerator_getAccelerator() -> Any:
        return None if ctx.active else original()

    return _accelerator_getAccelerator


@surface.wrap("torch._C:_get_accelerator", optional=True)
def older_accelerator(ctx: Context, original: Any) -> Any:
    """The same question in the words of torch 2.3 to 2.5."""
    if ctx.vendor.indexed:
        return original

    def _get_accelerator(*args: Any) -> Any:
        return ctx.make_device(None) if ctx.active else original(*args)

    return _get_accelerator


# The last of this surface: where a class has to stand in front of the type, `torch.device` is that one from here on.
@surface.construct("torch:device", probe=("cpu",))
def construct(ctx: Context, _type: Any) -> Any:
    """`torch.device("cuda")`, in every constructor form, is the vendor's device."""

    import torch

    devices, made, device_class = ctx.devices, ctx.devices.made, torch._C.device

    def rewrite(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # A device cannot be changed, so the same one can be handed out again for the same words.
        if not kwargs and args:
            first = args[0]
            if first.__class__ is str:
                if len(args) == 1:
                    return made.get(first) or keep(first, args)
                if len(args) == 2 and args[1].__class__ is int:
                    return made.get(args) or keep(args, args)
            elif first.__class__ is device_class and len(args) == 1:
                return first
        return translated(args, kwargs)

    def keep(key: Any, args: tuple[Any, ...]) -> Any:
        if key in made or ctx.device_type is None:
            return translated(args, {})
        given, options = translated(args, {})
        made[key] = None  # so that the constructor, called from here, goes on to torch's own
        try:
            device = device_class(*given, **options)
        finally:
            made.pop(key, None)  # another thread may have made the same, or closed the table
        devices.keep(key, device)
        return device

    def translated(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        first = args[0] if args else kwargs.get("type")
        index = args[1] if len(args) > 1 else kwargs.get("index")
        if ctx.device_type is None:
            return args, kwargs
        if isinstance(first, str):
            text = str.__str__(first)
            if index is None:
                found = devices[text]
                return (args, kwargs) if found.__class__ is str else ((found,), {})
            if text in ctx.aliases and isinstance(index, Integral):
                index = int(index)
                if index == 0 and not ctx.vendor.indexed:
                    return (ctx.device_type,), {}
                return (ctx.missing or ctx.device_type, index), {}
        elif first.__class__ is int and not ctx.vendor.indexed and index is None:
            return (ctx.make_device(first),), {}  # torch itself has no accelerator to count
        return args, kwargs

    return rewrite
