"""Memory of the `cpu` back end: the host's own figures, and statistics that are zero, since torch counts none there."""

from __future__ import annotations

import os
from typing import Any

_KINDS = ("all", "small_pool", "large_pool")
_STATISTICS = (
    "allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
    "inactive_split_bytes", "requested_bytes",
)  # fmt: skip
_COUNTERS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")

_given: dict[int, Any] = {}  # what caching_allocator_alloc keeps alive, by address


def total_memory() -> int:
    """Bytes of memory that the host has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """free and total memory of the host, in bytes"""
    total = total_memory()
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = {name: value for name, _, value in (line.partition(":") for line in lines)}
        return min(int(found["MemAvailable"].split()[0]) * 1024, total), total
    except (OSError, KeyError):  # not Linux
        pages = os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in getattr(os, "sysconf_names", ()) else 0
        return pages * (total and os.sysconf("SC_PAGE_SIZE")), total


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """zeros: torch does not count what it allocates on the host"""
    counts = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
    stats: dict[str, Any] = {name: {kind: dict(counts) for kind in _KINDS} for name in _STATISTICS}
    stats.update({name: dict(counts) for name in ("oversize_allocations", "oversize_segments")})
    stats.update(dict.fromkeys(_COUNTERS, 0))
    stats["max_split_size"] = -1
    return stats


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """empty: no pinned memory is pooled"""
    return {}


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """empty: the host's memory has no segments"""
    return []


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """empty: the host's memory has no segments"""
    return {"segments": [], "device_traces": [], "allocator_settings": {}, "external_annotations": []}


def _record_memory_history(*args: Any, **kwargs: Any) -> None:
    """accepted: there is no history to record"""


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """host memory; its address"""
    import torch

    storage = torch.UntypedStorage(size)
    _given[storage.data_ptr()] = storage
    return int(storage.data_ptr())


def caching_allocator_delete(mem_ptr: int) -> None:
    """gives back what caching_allocator_alloc gave; another address is ignored"""
    _given.pop(mem_ptr, None)


def _set_allocator_settings(env: str) -> None:
    """accepted: the host's allocator has no such settings"""


def empty_cache() -> None:
    """nothing is cached"""


def host_empty_cache() -> None:
    """nothing is cached"""


def reset_peak_memory_stats(device: Any = None) -> None:
    """there are no peaks to reset"""


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """there are no sums to reset"""


def reset_peak_host_memory_stats() -> None:
    """there are no peaks to reset"""


def reset_accumulated_host_memory_stats() -> None:
    """there are no sums to reset"""
