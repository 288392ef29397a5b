"""Streams and events."""

from __future__ import annotations

from typing import Any

import torch

from ._device import _get_device_index, device
from ._lazy import _lazy_init
from ._vendor import VENDOR, C


class Stream(torch.Stream):
    """A queue of work on one device; ``device`` is the device or its ordinal."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        if "stream_id" in kwargs:
            return super().__new__(
                cls,
                stream_id=kwargs["stream_id"],
                device_index=kwargs["device_index"],
                device_type=kwargs["device_type"],
            )
        _lazy_init()
        index = _get_device_index(device, optional=True)
        return super().__new__(cls, torch.device(VENDOR.name, index), priority=priority)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Marks this point of the stream in ``event`` (default: a new one), which is returned."""
        event = event if event is not None else Event()
        event.record(self)
        return event

    def wait_event(self, event: torch.Event) -> None:
        """Lets the stream wait for ``event``."""
        super().wait_event(_plain(event))

    def __repr__(self) -> str:
        return f"<torch.{VENDOR.name}.Stream device={self.device} {VENDOR.name}_stream={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream that something else made: ``stream_ptr`` is its handle."""

    def __new__(cls, stream_ptr: int, device: Any = None, **kwargs: Any) -> ExternalStream:
        index = _get_device_index(device, optional=True)
        kind = torch._C._autograd.DeviceType.PrivateUse1
        return super().__new__(cls, stream_id=stream_ptr, device_index=index, device_type=int(kind.value))


class Event(torch.Event):
    """A mark in a stream; with ``enable_timing`` two of them measure time.

    torch's own methods take no subclass of torch.Event (2.13), so each event holds a plain one that does the work.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        made = super().__new__(
            cls, VENDOR.name, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )
        made._plain = torch.Event(
            VENDOR.name, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )
        return made

    def record(self, stream: torch.Stream | None = None) -> None:
        """Marks this point of ``stream`` (default: the current one)."""
        self._plain.record(stream if stream is not None else current_stream())

    def wait(self, stream: torch.Stream | None = None) -> None:
        """Lets ``stream`` (default: the current one) wait for the mark."""
        self._plain.wait(stream if stream is not None else current_stream())

    def query(self) -> bool:
        """Whether the work before the mark is done."""
        return self._plain.query()

    def synchronize(self) -> None:
        """Waits for the work before the mark."""
        self._plain.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to ``end_event``'s."""
        return self._plain.elapsed_time(_plain(end_event))

    def hardware_time(self, end_event: Event) -> float:
        """Microseconds from this mark to ``end_event``'s, as the chip counts them (an MLU method)."""
        return self.elapsed_time(end_event) * 1000.0


def _plain(event: torch.Event) -> torch.Event:
    return event._plain if isinstance(event, Event) else event


def _as_stream(stream: torch.Stream) -> Stream:
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: Any | None = None) -> Stream:
    """The stream that work on ``device`` goes to."""
    _lazy_init()
    return _as_stream(
        torch.accelerator.current_stream(torch.device(VENDOR.name, _get_device_index(device, optional=True)))
    )


def default_stream(device: Any | None = None) -> Stream:
    """The stream that a device starts with."""
    _lazy_init()
    kind = torch._C._autograd.DeviceType.PrivateUse1
    return Stream(stream_id=0, device_index=_get_device_index(device, optional=True), device_type=int(kind.value))


def set_stream(stream: torch.Stream | None) -> None:
    """Sends work to ``stream`` from here on; None changes nothing."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    set_stream(Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))


class StreamContext:
    """Context manager: work goes to ``stream`` inside it."""

    cur_stream: torch.Stream | None

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self.cur_stream = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self.src_prev_stream = current_stream()
        self.dst_prev_stream = current_stream(self.stream.device)
        set_stream(self.stream)

    def __exit__(self, *exception: Any) -> None:
        if self.stream is None:
            return
        set_stream(self.dst_prev_stream)
        C.set_device(self.src_prev_stream.device_index)


def stream(stream: torch.Stream | None) -> StreamContext:
    """The context manager that sends work to ``stream``."""
    return StreamContext(stream)


__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "device",
    "set_stream",
    "stream",
]
