"""The plugin's fused operators in the place of torch's functions, where a variable asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _settings
from .._context import Context
from .._patching import Patch, Surface
from ..vendor import at

surface = Surface("fused")


@surface.discover
def fused(ctx: Context) -> Iterator[Patch]:
    """What the vendor's field `fused` has, as far as it is asked for; nothing is touched where nothing is."""
    for switch, declared in ctx.vendor.fused.items():
        setting = _settings.fused(ctx.vendor, switch)
        if setting.read():

            def build(ctx: Context, original: Any, make: str = declared.build) -> Any:
                routed = at(make)(ctx.vendor.device_type, original)

                def function(*args: Any, **kwargs: Any) -> Any:
                    return (routed if ctx.active else original)(*args, **kwargs)

                return function

            why = f"{setting.name}: the fused operator, where it applies."
            yield Patch(declared.targets[0], build, why, also=declared.targets[1:])
