"""The device module of the `cpu` back end: one device, the host itself, with the functions that a vendor's has.

``torch.cuda`` is routed to it as to any vendor's module.  Work on the host is done when a call returns, so streams are
always idle and events only tell the time; where the host has no answer (graphs, memory pools), the name is absent.
"""

from __future__ import annotations

import os
import time
from typing import Any

from .memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    host_empty_cache,
    host_memory_stats_as_nested_dict,
    mem_get_info,
    memory_snapshot,
    memory_stats_as_nested_dict,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    total_memory,
)
from .streams import Event, ExternalStream, Stream, current_stream, default_stream, set_stream

__all__ = [
    "Event", "ExternalStream", "Stream", "caching_allocator_alloc", "caching_allocator_delete",
    "can_device_access_peer", "current_device", "current_stream", "default_stream",
    "device_count", "empty_cache", "get_device_properties", "get_per_process_memory_fraction", "host_empty_cache",
    "host_memory_stats_as_nested_dict", "init", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "mem_get_info", "memory_snapshot", "memory_stats_as_nested_dict", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_device",
    "set_per_process_memory_fraction", "set_stream", "synchronize", "utilization",
]  # fmt: skip


# What `patches/amp.py` asks a device module before torch 2.4; see there.
_AUTOCAST = ("is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype")


class _State:
    """Whether something has asked for the device, and the limit that a program has set."""

    started = False
    fraction = 1.0


def __getattr__(name: str) -> Any:
    """The legacy tensor and storage types, the one default generator and the state of autocast are the CPU's own."""
    import torch

    if name == "default_generators":
        return (torch.default_generator,)
    if name in _AUTOCAST:
        return getattr(torch, name.replace("autocast", "autocast_cpu"))
    if name.endswith(("Tensor", "Storage")) and hasattr(torch, name):
        return getattr(torch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_available() -> bool:
    """true: the host is always there, unless CUDA_VISIBLE_DEVICES says that no card is to be seen"""
    return device_count() > 0


def device_count() -> int:
    """one, or none where CUDA_VISIBLE_DEVICES names none"""
    if _State.started:
        return 1
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return 1 if visible is None or visible.partition(",")[0].strip().isdecimal() else 0


def is_initialized() -> bool:
    """whether something has asked for the device"""
    return _State.started


def init() -> None:
    """marks the device as used; refused where CUDA_VISIBLE_DEVICES names none, as on CUDA"""
    if not _State.started:
        current_device()
        _State.started = True


def current_device() -> int:
    """always device 0; refused where CUDA_VISIBLE_DEVICES names none, as on CUDA"""
    if not device_count():
        raise RuntimeError("No CUDA GPUs are available")
    return 0


def set_device(device: int) -> None:
    """there is only device 0"""
    init()


def synchronize(device: Any = None) -> None:
    """nothing to wait for: work on the host is done when a call returns"""
    init()


def _sleep(cycles: int) -> None:
    """waits so long as a device of 1 GHz would take"""
    time.sleep(cycles / 1e9)


def ipc_collect() -> None:
    """nothing to collect"""


def can_device_access_peer(device: int, peer_device: int) -> bool:
    """there is no other device"""
    return False


def is_bf16_supported() -> bool:
    """true: torch computes in bfloat16 on every CPU"""
    return True


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """checked and remembered; the host's memory is not limited by it"""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _State.fraction = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """what was set"""
    return _State.fraction


def utilization(device: Any = None) -> int:
    """the load of the last minute, in percent of the processors"""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return min(100, round(100 * load / (os.cpu_count() or 1)))


class Properties:
    """What the host is, in the words of a device's properties."""

    def __init__(self) -> None:
        self.name = "CPU"
        self.total_memory = total_memory()
        self.multi_processor_count = os.cpu_count() or 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Properties)

    def __hash__(self) -> int:
        return hash(Properties)


def get_device_properties(device: Any = None) -> Properties:
    """name, memory and processors of the host"""
    return Properties()
