"""``torch.profiler``: activity and time of `cuda` are those of the vendor's device."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from typing import Any

from .._context import Context
from .._patching import Surface

surface = Surface("profiler")

_PROFILER = "torch.autograd.profiler"


def _activity(ctx: Context) -> Any:
    """The activity under which the plugin traces its device in torch's own profiler, or None."""
    from torch.autograd import ProfilerActivity, _supported_activities

    own = getattr(ProfilerActivity, str(ctx.device_type).upper(), None)
    activity = own if own is not None else getattr(ProfilerActivity, "PrivateUse1", None)
    return activity if ctx.vendor.indexed and activity in _supported_activities() else None


@functools.cache
def _loadable(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _translated(ctx: Context, activities: Iterable[Any]) -> set[Any]:
    """The activities as torch's tracer knows them: the vendor's for CUDA."""
    from torch.autograd import ProfilerActivity

    found = set(activities)
    if ctx.active and ProfilerActivity.CUDA in found:
        found.discard(ProfilerActivity.CUDA)
        activity = _activity(ctx)
        found.update(() if activity is None else (activity,))
    return found


@surface.wrap(f"{_PROFILER}:profile.__init__")
def profile(ctx: Context, original: Any) -> Any:
    """`profile(use_device="cuda")`, on which `torch.profiler` stands, measures the vendor's device."""

    def __init__(self: Any, enabled: Any = True, **kwargs: Any) -> None:
        named = ctx.device_kind(kwargs.get("use_device"))
        if ctx.active and enabled and (kwargs.get("use_cuda") or named == ctx.device_type):
            kwargs.pop("use_cuda", None)
            kwargs.update(_measured(ctx, kwargs.get("use_kineto", False)))
            if kwargs.get("activity_filters"):
                filters = kwargs["activity_filters"].items()
                kwargs["activity_filters"] = {kind: value for key, value in filters for kind in _translated(ctx, {key})}
        original(self, enabled, **kwargs)

    return __init__


def _measured(ctx: Context, traced: bool) -> dict[str, Any]:
    """The arguments under which torch's profiler measures the vendor's device as well as it can here."""
    library = ctx.vendor.trace_library
    if _activity(ctx) is None:
        if ctx.vendor.indexed:
            ctx.log.warning("%s does not take part in torch's profiler: the host's time is measured.", ctx.vendor.title)
        return {"use_device": None, "use_cpu": True}
    if not traced or (library is not None and not _loadable(library)):
        if library is None:  # the plugin traces, but has not said that it also marks operators with events
            return {"use_device": ctx.device_type, "use_kineto": True}
        # Each operator between two events: it needs no tracing library, and the host's side goes with it.
        return {"use_device": ctx.device_type, "use_kineto": False, "use_cpu": True}
    return {"use_device": ctx.device_type}


@surface.wrap(f"{_PROFILER}:profile.toggle_collection_dynamic", optional=True)
def toggle(ctx: Context, original: Any) -> Any:
    """Switching the activity `CUDA` off and on switches the vendor's."""

    def toggle_collection_dynamic(self: Any, enabled: bool, activities: Iterable[Any]) -> Any:
        return original(self, enabled, _translated(ctx, activities))

    return toggle_collection_dynamic


@surface.wrap("torch.profiler.profiler:supported_activities", also=("torch.profiler:supported_activities",))
def supported_activities(ctx: Context, original: Any) -> Any:
    """`CUDA` is among the activities, in the place of the vendor's."""

    def supported_activities() -> Any:
        from torch.autograd import ProfilerActivity

        found = set(original())
        if ctx.active:
            found.discard(_activity(ctx))
            found.add(ProfilerActivity.CUDA)
        return found

    return supported_activities


@surface.wrap("torch.profiler.profiler:_KinetoProfile.export_memory_timeline", optional=True)
def export_memory_timeline(ctx: Context, original: Any) -> Any:
    """The timeline of `cuda:0` is that of the vendor's device."""
    import torch

    def export_memory_timeline(self: Any, path: str, device: Any = None) -> Any:
        if ctx.active:
            if device is None and self.use_device is not None:
                device = "cuda:0"
            place = ctx.translate(device)
            if isinstance(place, torch.device) and place.index is None and ctx.owns(place):
                place = ctx.make_device(0)
            device = None if place is None else str(place)
        return original(self, path, device)

    return export_memory_timeline


@surface.wrap(f"{_PROFILER}:emit_nvtx.__enter__")
def emit_nvtx(ctx: Context, original: Any) -> Any:
    """The block runs; operators are not marked, since torch marks them for CUDA's tools only."""

    def __enter__(self: Any) -> Any:
        if not ctx.active:
            return original(self)
        if self.enabled:
            ctx.log.info("emit_nvtx: torch marks operators for CUDA's own tools only; the block runs without marks.")
            self.enabled = False
        return self

    return __enter__
