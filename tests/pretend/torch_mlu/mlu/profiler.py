"""Start and stop of the vendor's profiler: there is none here, so both succeed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._cnrt import check_error, cnrt

__all__ = ["init", "profile", "start", "stop"]


def init(output_file: str, flags: object = None, output_mode: str = "key_value") -> None:
    """Chooses what the profiler writes."""
    cnrt()


def start() -> None:
    """Starts the profiler."""
    check_error(0)


def stop() -> None:
    """Stops the profiler."""
    check_error(0)


@contextmanager
def profile() -> Iterator[None]:
    """Context manager: profiles what happens inside."""
    start()
    try:
        yield
    finally:
        stop()
