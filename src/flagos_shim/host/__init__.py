"""The device module of the `cpu` back end: one device, the host itself, with the functions that a vendor's has.

``torch.cuda`` is routed to it as to any vendor's module.  Work on the host is done when a call returns, so streams are
always idle and events only tell the time; where the host has no answer (graphs, memory pools), the name is absent.
"""

from __future__ import annotations

import os
from typing import Any

from .memory import (
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
    "Event", "ExternalStream", "Stream", "can_device_access_peer", "current_device", "current_stream", "default_stream",
    "device_count", "empty_cache", "get_device_properties", "get_per_process_memory_fraction", "host_empty_cache",
    "host_memory_stats_as_nested_dict", "init", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "mem_get_info", "memory_snapshot", "memory_stats_as_nested_dict", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_device",
    "set_per_process_memory_fraction", "set_stream", "synchronize",
]  # fmt: skip


class _Started:
    """Whether something has asked for the device; pending calls wait for that."""

    done = False
    waiting: list[Any] = []


def __getattr__(name: str) -> Any:
    """The legacy tensor and storage types are the CPU's own; the one default generator is the CPU's."""
    import torch

    if name == "default_generators":
        return (torch.default_generator,)
    if name.endswith(("Tensor", "Storage")) and hasattr(torch, name):
        return getattr(torch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_available() -> bool:
    """true: the host is always there, unless CUDA_VISIBLE_DEVICES says that no card is to be seen"""
    return device_count() > 0


def device_count() -> int:
    """one, or none where CUDA_VISIBLE_DEVICES names none"""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return 1 if visible is None or visible.partition(",")[0].strip().isdecimal() else 0


def is_initialized() -> bool:
    """whether something has asked for the device"""
    return _Started.done


def init() -> None:
    """marks the device as used, and runs what waited for that"""
    if not _Started.done:
        _Started.done = True
        waiting, _Started.waiting = _Started.waiting, []
        for call in waiting:
            call()


def _lazy_call(call: Any) -> None:
    """runs at once: nothing on the host needs to be started"""
    call()


def current_device() -> int:
    """always device 0"""
    init()
    return 0


def set_device(device: int) -> None:
    """there is only device 0"""
    init()


def synchronize(device: Any = None) -> None:
    """nothing to wait for: work on the host is done when a call returns"""
    init()


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
    _Fraction.value = fraction


class _Fraction:
    value = 1.0


def get_per_process_memory_fraction(device: Any = None) -> float:
    """what was set"""
    return _Fraction.value


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
