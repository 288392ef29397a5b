"""The autocast switches that older torch versions asked a plugin for (Cambricon/torch_mlu mlu/autocast_utils.py)."""

from __future__ import annotations

import torch

__all__ = [
    "get_amp_supported_dtype",
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast computes in."""
    return [torch.float16, torch.bfloat16]


def is_autocast_enabled() -> bool:
    """Whether autocast is on."""
    return torch.is_autocast_enabled("mlu")


def set_autocast_enabled(enable: bool) -> None:
    """Turns autocast on or off."""
    torch.set_autocast_enabled("mlu", enable)


def get_autocast_dtype() -> torch.dtype:
    """The type that autocast computes in now."""
    return torch.get_autocast_dtype("mlu")


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Chooses the type that autocast computes in."""
    torch.set_autocast_dtype("mlu", dtype)
