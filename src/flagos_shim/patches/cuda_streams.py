"""``torch.cuda`` streams and events: the vendor's own classes, taking what CUDA's take."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import ADVICE, find, index_of, stand_in, unsupported
from .._patching import Patch

ADVICE["ExternalStream"] = "make a torch.cuda.Stream"
ADVICE["get_stream_from_external"] = "make a torch.cuda.Stream"


def vendor_classes(ctx: Context) -> Iterator[Patch]:
    """What CUDA's streams and events have beyond the vendor's is added to the vendor's classes."""
    if ctx.vendor.package is None:
        yield Patch("torch:Tensor.record_stream", _record_stream, "There is no allocator to tell about streams.")
        return
    stream, event = find(ctx, "Stream"), find(ctx, "Event")
    if stream is not None:
        place = f"{stream.__module__}:{stream.__qualname__}"
        handle = f"{ctx.device_type}_stream"
        if hasattr(stream, handle):
            yield Patch(f"{place}.cuda_stream", _alias(handle), "The vendor's stream handle.", "provide")
            yield Patch(f"{place}.__cuda_stream__", _protocol(handle), "The stream protocol.", "provide")
        yield Patch(f"{place}.priority_range", _priority_range, "Always has an answer.", "provide")
        given: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        yield Patch(f"{place}.__new__", _stream(given), "Remembers the priority asked for.", "replace")
        yield Patch(f"{place}.priority", _priority(given), "Told also where the plugin does not.", "provide")
    if event is not None:
        place = f"{event.__module__}:{event.__qualname__}"
        untimed: weakref.WeakSet[Any] = weakref.WeakSet()
        why = "Accepts `external=`, and `interprocess=` everywhere."
        yield Patch(f"{place}.__new__", _event(untimed), why, "replace")
        yield Patch(f"{place}.elapsed_time", _elapsed_time(untimed), "Raises what CUDA's events raise.")
        handle = f"{ctx.device_type}_event"
        if hasattr(event, handle):
            yield Patch(f"{place}.cuda_event", _alias(handle), "The vendor's event handle.", "provide")


def _record_stream(ctx: Context, original: Any) -> Any:
    def record_stream(self: Any, stream: Any) -> None:
        if not ctx.active or not isinstance(stream, find(ctx, "Stream")):
            original(self, stream)

    return record_stream


def _alias(handle: str) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        return property(lambda self: getattr(self, handle))

    return build


def _protocol(handle: str) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        def __cuda_stream__(self: Any) -> tuple[int, int]:
            return 0, getattr(self, handle)

        return __cuda_stream__

    return build


def _event(untimed: weakref.WeakSet[Any]) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
            if not ctx.active:
                return original(cls, *args, **kwargs)
            external = args[3] if len(args) > 3 else kwargs.pop("external", False)
            args = args[:3]
            if external:
                raise unsupported(ctx, "Event(external=True)")
            try:
                event = original(cls, *args, **kwargs)
            except RuntimeError as error:
                if not (args[2] if len(args) > 2 else kwargs.pop("interprocess", False)):
                    raise
                # Most programs that ask for it never share the event; `ipc_handle` says that this one cannot be.
                ctx.log.info("%s has no events between processes: %s", ctx.vendor.title, error)
                event = original(cls, *args[:2], **kwargs)
            if not (args[0] if args else kwargs.get("enable_timing", False)):
                untimed.add(event)
            return event

        return staticmethod(__new__)

    return build


def _elapsed_time(untimed: weakref.WeakSet[Any]) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        def elapsed_time(self: Any, end_event: Any) -> Any:
            if ctx.active and (self in untimed or end_event in untimed):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            try:
                return original(self, end_event)
            except RuntimeError as error:
                if not ctx.active or "must be recorded" not in str(error):
                    raise
                raise ValueError("Both events must be recorded before calculating elapsed time.") from error

        return elapsed_time

    return build


def _stream(given: weakref.WeakKeyDictionary[Any, int]) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
            stream = original(cls, *args, **kwargs)
            priority = args[1] if len(args) > 1 else kwargs.get("priority", 0)
            if priority:
                given[stream] = priority
            return stream

        return staticmethod(__new__)

    return build


def _priority(given: weakref.WeakKeyDictionary[Any, int]) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        def priority(self: Any) -> int:
            try:
                return int(original.__get__(self))
            except (RuntimeError, AttributeError):
                return given.get(self, 0)

        return property(priority)

    return build


def _priority_range(ctx: Context, original: Any) -> Any:
    def priority_range() -> tuple[int, int]:
        try:
            low, high = original()
        except (RuntimeError, TypeError):  # the plugin does not tell; low and high are what every stream takes
            return 0, -1
        return low, high

    return staticmethod(priority_range)


@stand_in("torch.cuda:current_stream", "torch.cuda:default_stream")
def stream_of(ctx: Context, original: Any) -> Any:
    """the vendor's stream of a device"""
    import torch

    ask = find(ctx, original.__name__)

    def current_stream(device: Any = None) -> Any:
        if not ctx.active:
            return original(device)
        index = None if device is None else index_of(ctx, device)
        if index is None or index == ctx.module.current_device():
            return ask()
        with torch.cuda.device(index):  # some plugins know the streams of the current device only
            return ask(index)

    return current_stream


@stand_in("torch.cuda:_set_stream_by_id")
def set_stream_by_id(ctx: Context, original: Any) -> Any:
    """the vendor's stream of that number"""
    make, choose = find(ctx, "Stream"), find(ctx, "set_stream")

    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        if not ctx.active:
            original(stream_id, device_index, device_type)
            return
        choose(make(stream_id=stream_id, device_index=device_index, device_type=device_type))

    return _set_stream_by_id


@stand_in("torch.cuda:get_stream_from_external", needs="ExternalStream")
def get_stream_from_external(ctx: Context, original: Any) -> Any:
    """the vendor's ExternalStream around the handle"""
    make = find(ctx, "ExternalStream")

    def get_stream_from_external(data_ptr: int, device: Any = None) -> Any:
        if not ctx.active:
            return original(data_ptr, device)
        return make(data_ptr, device=index_of(ctx, device))

    return get_stream_from_external
