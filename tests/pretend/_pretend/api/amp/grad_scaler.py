"""torch.amp.GradScaler for the device."""

from __future__ import annotations

import torch

from .._vendor import VENDOR


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler for the device."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            VENDOR.name,
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
