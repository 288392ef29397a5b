"""Memory functions that take ``all_device`` (core/memory.py): torch.cuda's names with one parameter more."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ._device import device_count
from .memory import memory_stats


def memory_stats_all() -> dict[str, int]:
    """The statistics of all devices: peaks by the highest, the rest added up."""
    totals: dict[str, int] = defaultdict(int)
    for index in range(device_count()):
        for key, value in memory_stats(index).items():
            totals[key] = max(totals[key], value) if key.endswith(".peak") else totals[key] + value
    return totals


def _one(key: str, device: Any, all_device: bool) -> int:
    stats = memory_stats_all() if device is None and all_device else memory_stats(device)
    return stats.get(key, 0)


def memory_allocated(device: Any = None, all_device: bool = False) -> int:
    """Bytes in tensors now."""
    return _one("allocated_bytes.all.current", device, all_device)


def max_memory_allocated(device: Any = None, all_device: bool = False) -> int:
    """Bytes in tensors at the most."""
    return _one("allocated_bytes.all.peak", device, all_device)


def memory_reserved(device: Any = None, all_device: bool = False) -> int:
    """Bytes that the allocator holds now."""
    return _one("reserved_bytes.all.current", device, all_device)
