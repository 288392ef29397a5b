"""Range markers in the shape of nvtx; nobody listens here, the nesting is kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_open: list[str] = []
_ids = itertools.count(1)


def range_push(msg: str) -> int:
    """Opens a nested range; its depth, from 0."""
    _open.append(msg)
    return len(_open) - 1


def range_pop() -> int:
    """Closes the innermost range; its depth, -1 where none is open."""
    if not _open:
        return -1
    _open.pop()
    return len(_open)


def range_start(msg: str) -> int:
    """Opens a range that may cross others; its id."""
    return next(_ids)


def range_end(range_id: int) -> None:
    """Closes the range with this id."""


def mark(msg: str) -> None:
    """Marks a point in time."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Context manager and decorator: a range around the code inside."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
