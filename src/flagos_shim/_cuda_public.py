"""What there is in ``torch.cuda`` and its submodules on the installed torch, found at run time."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ._patching import MISSING

# Names beside ``__all__``: public ones that torch.cuda takes from elsewhere, and private ones that torch's own code, or
# well-known libraries, call.
_BESIDE = (
    "AcceleratorError", "OutOfMemoryError",
    "_is_in_bad_fork", "_lazy_init", "_lazy_call", "_exchange_device", "_maybe_exchange_device", "_sleep", "_cudart",
    "_set_stream_by_id", "_CudaDeviceProperties", "_get_device_properties", "_DeviceGuard", "_get_device",
    "_get_generator", "_get_rng_state_offset", "_set_rng_state_offset", "_compile_kernel",
)  # fmt: skip
_BESIDE_IN = {
    "torch.cuda": _BESIDE,
    "torch.cuda._utils": ("_get_device_index",),
    "torch.cuda.memory": (
        "_snapshot", "_dump_snapshot", "_record_memory_history", "_save_segment_usage", "_save_memory_usage",
        "_set_allocator_settings", "_get_current_allocator", "_host_allocator", "_use_uvm", "_CUDAAllocator",
        "_set_memory_metadata", "_get_memory_metadata",
    ),
    "torch.cuda.jiterator": ("_create_jit_fn", "_create_multi_output_jit_fn"),
    "torch.cuda.nvtx": ("_device_range_start", "_device_range_end"),
}  # fmt: skip


def modules() -> list[ModuleType]:
    """torch.cuda and its public submodules, imported."""
    root = importlib.import_module("torch.cuda")
    found = [root]
    for info in pkgutil.walk_packages(root.__path__, "torch.cuda."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            found.append(importlib.import_module(info.name))
    return found


def _public(module: ModuleType) -> Iterator[str]:
    listed = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        owner = getattr(value, "__module__", None) or ""
        if not name.startswith("_") and isinstance(value, (type, type(_public))) and owner.startswith("torch.cuda"):
            listed.add(name)
    listed = {n for n in listed if not isinstance(getattr(module, n, None), ModuleType)}
    # One of these, `_cudart`, is a module where torch was built for CUDA.
    listed.update(n for n in _BESIDE_IN.get(module.__name__, ()) if n in vars(module))
    yield from sorted(listed)


def groups() -> dict[str, tuple[Any, list[str]]]:
    """Primary target -> the object and all its places ("module:name"), the primary one first."""
    everywhere = modules()
    everywhere += [importlib.import_module(n) for n in _BESIDE_IN if n not in {m.__name__ for m in everywhere}]
    public: dict[str, Any] = {}
    places: dict[int, list[str]] = {}
    for module in everywhere:
        for name in _public(module):
            public[f"{module.__name__}:{name}"] = getattr(module, name, MISSING)
    for module in everywhere:
        for name, value in list(vars(module).items()):
            if not name.startswith("__") and identified(value):
                places.setdefault(id(value), []).append(f"{module.__name__}:{name}")
    found: dict[str, tuple[Any, list[str]]] = {}
    seen: set[int] = set()
    for target, value in public.items():
        if not identified(value):
            found[target] = (value, [target])
        elif id(value) not in seen:
            seen.add(id(value))
            rest = [place for place in places.get(id(value), ()) if place != target]
            found[target] = (value, [target, *rest])
    return found


def identified(value: Any) -> bool:
    """True where sharing an object means sharing a meaning: not so for constants."""
    return isinstance(value, type) or callable(value)
