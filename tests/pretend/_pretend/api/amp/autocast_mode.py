"""torch.autocast for the device, and the decorators for autograd functions under it."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .._vendor import VENDOR


class autocast(torch.amp.autocast_mode.autocast):
    """``torch.autocast`` with the device's name filled in."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__(VENDOR.name, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
    """``torch.amp.custom_fwd`` for the device."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)
    return torch.amp.custom_fwd(fwd, device_type=VENDOR.name, cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """``torch.amp.custom_bwd`` for the device."""
    return torch.amp.custom_bwd(bwd, device_type=VENDOR.name)
