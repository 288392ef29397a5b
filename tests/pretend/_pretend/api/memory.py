"""Memory of the device: the caching allocator's statistics and switches."""

from __future__ import annotations

import ctypes
import os
import pickle
from collections import OrderedDict
from typing import Any

from . import _lazy
from ._lazy import _lazy_init
from ._utils import _get_device_index
from ._vendor import VENDOR, C


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Takes ``size`` bytes and returns their address."""
    return C.raw_alloc(_get_device_index(device, optional=True), size)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Gives memory back that ``caching_allocator_alloc`` took."""
    C.raw_delete(mem_ptr)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limits this process to a share of the device's memory."""
    _lazy_init()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    C.set_fraction(fraction, _get_device_index(device, optional=True))


def empty_cache() -> None:
    """Gives cached memory back to the device."""
    if _lazy.is_initialized():
        C.empty_cache()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics as nested dicts; empty before the device has started."""
    if not _lazy.is_initialized():
        return {}
    return C.memory_statistics(_get_device_index(device, optional=True))


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """The allocator's statistics under torch.cuda's dotted keys."""
    flat: list[tuple[str, Any]] = []

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else key, inner)
        else:
            flat.append((prefix, value))

    walk("", memory_stats_as_nested_dict(device))
    return OrderedDict(sorted(flat))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Zeroes what has been allocated and freed so far."""
    _lazy_init()
    C.reset_accumulated(_get_device_index(device, optional=True))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Sets all peaks to the current values."""
    _lazy_init()
    C.reset_peak(_get_device_index(device, optional=True))


def reset_max_memory_allocated(device: Any = None) -> None:
    """As ``reset_peak_memory_stats``."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """As ``reset_peak_memory_stats``."""
    reset_peak_memory_stats(device)


def memory_allocated(device: Any = None) -> int:
    """Bytes in tensors now."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """Bytes in tensors at the most."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds now."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator held at the most."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def memory_cached(device: Any = None) -> int:
    """As ``memory_reserved``."""
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """As ``max_memory_reserved``."""
    return max_memory_reserved(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the device."""
    _lazy_init()
    return C.memory_info(_get_device_index(device, optional=True))


def memory_snapshot() -> list[dict[str, Any]]:
    """The allocator's segments and their blocks, in torch.cuda's form."""
    return C.memory_snapshot()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the statistics."""
    index = _get_device_index(device, optional=True)
    stats = memory_stats(index)
    pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    rows = [
        f"{VENDOR.label} memory, device {index}: {stats.get('num_ooms', 0)} out of memory, "
        f"{stats.get('num_alloc_retries', 0)} retries"
    ]
    for metric in (
        "allocated_bytes",
        "active_bytes",
        "requested_bytes",
        "reserved_bytes",
        "inactive_split_bytes",
        "allocation",
        "active",
        "segment",
        "inactive_split",
    ):
        for pool in pools:
            cells = [stats.get(f"{metric}.{pool}.{kind}", 0) for kind in ("current", "peak", "allocated", "freed")]
            rows.append(f"{metric + ' ' + pool:<32}|" + "|".join(f"{cell:>14}" for cell in cells))
    return "\n".join(rows)


def _record_memory_history(enabled: str | None = "all", *args: Any, **kwargs: Any) -> None:
    _lazy_init()


def _snapshot(device: Any = None) -> dict[str, Any]:
    return {"segments": memory_snapshot(), "device_traces": [], "allocator_settings": {}}


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _save_segment_usage(filename: str = "output.svg", snapshot: Any = None) -> None:
    _no_picture(filename)


def _save_memory_usage(filename: str = "output.svg", snapshot: Any = None) -> None:
    _no_picture(filename)


def _no_picture(filename: str) -> None:
    raise NotImplementedError(f"the pretend device draws no pictures: {filename}")


def _set_allocator_settings(env: str) -> None:
    os.environ[VENDOR.alloc_conf] = env
    _lazy._apply_alloc_conf()


class _Allocator:
    def __init__(self, allocator: Any) -> None:
        self._allocator = allocator

    def allocator(self) -> Any:
        return self._allocator


def _pluggable(self: Any, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
    library = ctypes.CDLL(path_to_so_file)
    _Allocator.__init__(self, (getattr(library, alloc_fn_name), getattr(library, free_fn_name)))


globals()[VENDOR.pluggable] = type(VENDOR.pluggable, (_Allocator,), {"__init__": _pluggable, "__module__": __name__})


def change_current_allocator(allocator: Any) -> None:
    """Refused once memory has been taken; before, there is nothing here that a foreign allocator could serve."""
    if _lazy.is_initialized():
        raise RuntimeError("Can't swap an already initialized allocator")
    raise NotImplementedError("the pretend device keeps its own allocator")


def _get_current_allocator() -> _Allocator:
    return _Allocator(None)
