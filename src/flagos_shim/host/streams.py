"""Streams and events of the `cpu` back end: nothing runs beside the caller; a stream is idle, an event is a time."""

from __future__ import annotations

import abc
import importlib.util
import itertools
import threading
import time
from typing import Any

import torch  # this is imported by activation, after torch

_numbers = itertools.count(1)
_current = threading.local()


def _bases(name: str) -> tuple[Any, ...]:
    """torch's own bases, so that torch.compile knows these for what they are.

    They are the C type (torch before 2.4 has no Event) and, in torch 2.2 to 2.5, an abstract class beside it.
    """
    beside = "torch._streambase"
    abstract = importlib.import_module(beside).__dict__[f"_{name}Base"] if importlib.util.find_spec(beside) else None
    both = (getattr(torch, name, None), abstract if isinstance(abstract, abc.ABCMeta) else None)
    return tuple(base for base in both if base is not None)


class Event(*_bases("Event")):  # type: ignore[misc]
    """A point in time; recorded, it is done.

    Args: as of ``torch.cuda.Event``; only ``enable_timing`` makes a difference.
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Event:
        event: Event = super().__new__(cls, device="cpu") if hasattr(torch, "Event") else super().__new__(cls)
        event._timing = bool(enable_timing)
        event._time = None
        return event

    _timing: bool
    _time: float | None

    @property
    def device(self) -> Any:
        """The host."""
        return torch.device("cpu")

    @property
    def cuda_event(self) -> int:
        """No handle: 0."""
        return 0

    def record(self, stream: Any = None) -> None:
        """Remember the time."""
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Always done."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event's record to the other's.

        Raises:
            ValueError: one of them was made without ``enable_timing`` or was not recorded.
        """
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1000.0

    def ipc_handle(self) -> bytes:
        """Raises: RuntimeError, since a time has no handle for another process."""
        raise RuntimeError("Events of the cpu back end cannot be shared with another process.")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """Raises: RuntimeError, see ipc_handle."""
        raise RuntimeError("Events of the cpu back end cannot be shared with another process.")


class Stream(*_bases("Stream")):  # type: ignore[misc]
    """An order of work that is always the caller's own.

    Args: as of ``torch.cuda.Stream``.
    """

    def __new__(cls, device: Any = None, priority: int = 0, *, stream_id: int | None = None, **identity: Any) -> Stream:
        number = next(_numbers) if stream_id is None else stream_id
        stream: Stream = super().__new__(cls, stream_id=number, device_index=0, device_type=0)
        stream.priority = priority
        stream._outer = []
        return stream

    priority: int
    _outer: list[Stream]

    @property
    def device(self) -> Any:
        """The host."""
        return torch.device("cpu")

    @property
    def cuda_stream(self) -> int:
        """The number of the stream; 0 is the default one."""
        return int(self.stream_id)

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """Record the given event, or a new one, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Always idle."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def __enter__(self) -> Stream:
        self._outer.append(current_stream())
        set_stream(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        set_stream(self._outer.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(("stream", self.stream_id))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cpu cuda_stream={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream of another library's, which on the host is a number.

    Args: as of ``torch.cuda.ExternalStream``.
    """

    def __new__(cls, stream_ptr: int, device: Any = None, **identity: Any) -> ExternalStream:
        stream: Any = super().__new__(cls, device, stream_id=stream_ptr)
        return stream  # type: ignore[no-any-return]


_default: Any = Stream(stream_id=0)


def default_stream(device: Any = None) -> Stream:
    """the caller's own order of work"""
    own: Stream = _default
    return own


def current_stream(device: Any = None) -> Stream:
    """the stream that this thread has chosen"""
    chosen: Stream = getattr(_current, "stream", _default)
    return chosen


def set_stream(stream: Stream | None) -> None:
    """chooses a stream for this thread"""
    if stream is not None:
        _current.stream = stream
