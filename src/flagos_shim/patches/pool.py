"""``FLAGOS_<VENDOR>_POOL_SIZE``: the caching allocator is warm before the program's first tensor.

The plugin calls what was queued with its ``_lazy_call`` when the device starts, whoever starts it; asking whether there
is a device starts none.  Where the first use is to choose a card, the pool is that card's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _settings
from .._context import Context
from .._cuda_names import find
from .._patching import Patch, Surface

surface = Surface("pool")


class Pool:
    """Reserves memory once, on the device that is current when it is first used."""

    def __init__(self, ctx: Context, variable: str, size: int) -> None:
        """Args: ctx: the activation; variable: what asked for it; size: bytes."""
        self._ctx = ctx
        self._variable = variable
        self._size = size
        self._done = False
        self._choosing = 0  # a card is being chosen: the one that is current now is not the one to warm
        self._due = False

    def started(self) -> None:
        """The device has started."""
        if self._choosing:
            self._due = True
        else:
            self._warm()

    def choose(self, function: Any, *args: Any) -> Any:
        """Call a function that chooses a card; where that has started the device, warm it then."""
        self._choosing += 1
        try:
            result = function(*args)
        finally:
            self._choosing -= 1
        if self._due and not self._choosing:
            self._warm()
        return result

    def _warm(self) -> None:
        ctx = self._ctx
        if self._done or not ctx.active:
            return
        self._done = True
        import torch

        device = ctx.make_device(ctx.module.current_device())
        try:
            # Freed at once, which gives it to the cache and not back to the device.
            torch.empty(self._size, dtype=torch.uint8, device=device)
        except RuntimeError as error:
            text = str(error).partition("\n")[0]
            ctx.log.warning(
                "%s=%d: %s did not give that much, so nothing is reserved: %s", self._variable, self._size, device, text
            )
            return
        reset = find(ctx, "reset_peak_memory_stats")
        if reset is not None:  # a program's peak is that of its own tensors
            reset()


@surface.discover
def pool(ctx: Context) -> Iterator[Patch]:
    """Choosing a card before the device has started chooses the one whose allocator is warmed."""
    setting = _settings.pool_size(ctx.vendor)
    size = setting.read()
    if size is None:
        return
    later = find(ctx, "_lazy_call")
    if not ctx.vendor.indexed or later is None:
        what = "no device memory" if not ctx.vendor.indexed else "no way to be called when the device starts"
        ctx.log.warning("%s=%d has no effect: %s has %s.", setting.name, size, ctx.vendor.title, what)
        return
    warm = Pool(ctx, setting.name, size)

    def build(ctx: Context, original: Any) -> Any:
        def choose(*args: Any) -> Any:
            return warm.choose(original, *args)

        return choose

    why = f"{setting.name}: {(pool.__doc__ or '').strip()}"
    for target in (f"{ctx.module.__name__}:set_device", "torch.cuda:_exchange_device"):
        yield Patch(target, build, why)
    later(warm.started)
