"""Device arguments to ordinals."""

from __future__ import annotations

from typing import Any

import torch

from ._vendor import VENDOR, C


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The ordinal that ``device`` (int, string, torch.device, None) names; ValueError if it is another type's."""
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != VENDOR.name:
            raise ValueError(f"Expected a {VENDOR.name} device, but got: {device}")
        if device.index is not None:
            return device.index
    elif device is not None and not isinstance(device, int):
        raise ValueError(f"Expected a torch.device or int, but got: {device}")
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return C.current_device()
