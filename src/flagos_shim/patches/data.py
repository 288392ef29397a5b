"""``torch.utils.data``: what a loader asks the device for."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface

surface = Surface("data")


@surface.wrap("torch.utils.data.dataloader:_BaseDataLoaderIter.__init__")
def unpinned(ctx: Context, original: Any) -> Any:
    """`DataLoader(pin_memory=True)` loads without pinning on the CPU, and without a warning."""
    if ctx.vendor.indexed:
        return original

    import wrapt

    class Unpinned(wrapt.ObjectProxy):  # type: ignore[type-arg]
        """The program's loader, whose own attribute stays as it is."""

        pin_memory = False

    def __init__(self: Any, loader: Any) -> None:
        original(self, Unpinned(loader) if ctx.active and loader.pin_memory else loader)

    return __init__
