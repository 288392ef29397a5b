"""``torch.Generator``, ``torch.Stream`` and ``torch.Event``: C types that are constructed for a device."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface

generators = Surface("generator")
streams = Surface("accelerator streams")
surface = (generators, streams)


def rewrite_device(ctx: Context, _type: Any) -> Any:
    """A device given to the constructor becomes the vendor's."""

    def rewrite(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if args:
            return (ctx.translate(args[0]), *args[1:]), kwargs
        if "device" in kwargs:
            kwargs["device"] = ctx.translate(kwargs["device"])
        return args, kwargs

    return rewrite


generators.construct("torch:Generator", probe=())(rewrite_device)


@streams.discover
def streams_of_torch(ctx: Context) -> Any:
    """`torch.Stream` and `torch.Event`, where this torch has them and the machine an accelerator to probe them on."""
    import torch

    from .._patching import Patch

    if not ctx.vendor.indexed:
        return
    for name in ("Stream", "Event"):
        if hasattr(torch, name):
            why = "Constructed for the vendor's device."
            yield Patch(f"torch:{name}", rewrite_device, why, "construct", probe=("cpu",))
