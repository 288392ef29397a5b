"""``torch.Generator``, ``torch.Stream`` and ``torch.Event``: C types that are constructed for a device."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Build, Surface

generators = Surface("generator")
streams = Surface("accelerator streams")
surface = (generators, streams)

_EVENT_OPTIONS = ("enable_timing", "blocking", "interprocess")


def rewrite_device(ctx: Context, _type: Any) -> Any:
    """A device given to the constructor becomes the vendor's."""

    def rewrite(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if args:
            return (ctx.translate(args[0]), *args[1:]), kwargs
        if "device" in kwargs:
            kwargs["device"] = ctx.translate(kwargs["device"])
        return args, kwargs

    return rewrite


@generators.construct("torch:Generator", probe=())
def rewrite_generator(ctx: Context, kind: Any) -> Any:
    """A generator is of one device: without an ordinal, of the current one, as CUDA's."""
    import torch

    rewrite = rewrite_device(ctx, kind)

    def with_ordinal(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = rewrite(args, kwargs)
        device = args[0] if args else kwargs.get("device")
        if isinstance(device, str):  # the vendor's own name for it
            device = torch.device(device)
        if device is None or getattr(device, "index", 0) is not None or not ctx.owns(device):
            return args, kwargs
        device = ctx.make_device(ctx.module.current_device())
        return ((device, *args[1:]), kwargs) if args else (args, {**kwargs, "device": device})

    return with_ordinal


@streams.discover
def streams_of_torch(ctx: Context) -> Any:
    """`torch.Stream` and `torch.Event`, where this torch has them; on the CPU they are those of `torch.cuda`."""
    import torch

    from .._patching import Patch

    if not hasattr(torch, "Event"):
        return  # before torch 2.4 a torch.Stream is made of numbers only
    if not ctx.vendor.indexed:
        for name, probe in (("Stream", (0, 0, 0)), ("Event", ("cpu",))):
            yield Patch(f"torch:{name}", _hosts(name), "Made for the CPU.", "construct", probe=probe)
        return
    for name in ("Stream", "Event"):
        why = "Constructed for the vendor's device."
        yield Patch(f"torch:{name}", rewrite_device, why, "construct", probe=("cpu",))


def _hosts(name: str) -> Build:
    def build(ctx: Context, _type: Any) -> Any:
        """The host's own class, which torch has no such object for; what names another device is torch's."""
        import torch

        make = getattr(ctx.module, name)

        def rewrite(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            device = args[0] if args else kwargs.get("device")
            if device is None:
                ours = ctx.active and not args and kwargs.keys() <= {"device", "priority", *_EVENT_OPTIONS}
            else:
                found = ctx.translate(device) if len(args) < 3 else device
                ours = isinstance(found, torch.device) and found is not device and found.type == ctx.device_type
                ours = ours or (isinstance(device, torch.device) and device.type == ctx.device_type)
            if not ours:
                return args, kwargs
            kwargs.pop("device", None)
            return make(*((None, *args[1:]) if name == "Stream" else args[1:]), **kwargs)

        return rewrite

    return build
