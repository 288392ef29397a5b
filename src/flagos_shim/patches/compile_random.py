"""Random numbers that a compiled checkpoint draws twice: torch keeps the generator's state by the kind of device."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface

surface = Surface("compile_random", after="torch._prims.rng_prims")


@surface.wrap("torch._prims.rng_prims:get_device")
def get_device(ctx: Context, original: Any) -> Any:
    """A compiled checkpoint draws the same dropout again on a plugin that has not taught torch this itself."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original
    import torch

    # The kinds of device that torch's operators know stand in a table of their own; theirs for CUDA asks `torch.cuda`.
    plugins = torch._C.DispatchKey.PrivateUse1

    def get_device(args: Any, kwargs: Any) -> Any:
        found = original(args, kwargs)
        if not ctx.active or found != ctx.device_type:
            return found
        return found if plugins in torch._prims.rng_prims.run_and_save_rng_state.py_kernels else "cuda"

    return get_device
