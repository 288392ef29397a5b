"""Graph capture; the vendor's ``graphs`` module gives the classes their names.

The device does captured work at once, unlike a chip, and again at each ``replay``.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from ._lazy import _lazy_init
from ._vendor import VENDOR, C
from .streams import Stream, current_stream
from .streams import stream as stream_context

_pools = itertools.count(1)
_capturing = {"now": False}


def _graph_pool_handle() -> tuple[int, int]:
    return (0, next(_pools))


def graph_pool_handle() -> tuple[int, int]:
    """A token for the memory pool that graphs share."""
    return _graph_pool_handle()


def is_current_stream_capturing() -> bool:
    """Whether a capture is going on."""
    return _capturing["now"]


class Graph:
    """A captured piece of work."""

    def __new__(cls) -> Graph:
        made = super().__new__(cls)
        made._captured = False
        made._pool = _graph_pool_handle()
        made._work = C.Graph()
        return made

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "relaxed") -> None:
        """Starts to capture what the current stream gets."""
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if current_stream().stream_id == 0:
            raise RuntimeError(f"{VENDOR.label} graphs must be captured on a non-default stream.")
        self._pool = pool or self._pool
        _capturing["now"] = True
        self._work.begin()

    def capture_end(self) -> None:
        """Ends the capture."""
        if not _capturing["now"]:
            raise RuntimeError(f"{VENDOR.label} graph: capture_end() without capture_begin()")
        _capturing["now"] = False
        self._work.end()
        self._captured = True

    def replay(self) -> None:
        """Runs what was captured; RuntimeError before that."""
        if not self._captured:
            raise RuntimeError(f"Called {type(self).__name__}::replay without a preceding successful capture.")
        self._work.replay()

    def reset(self) -> None:
        """Forgets the capture."""
        self._captured = False
        self._work.reset()

    def pool(self) -> Any:
        """The token of this graph's memory pool."""
        return self._pool

    def enable_debug_mode(self) -> None:
        """Nothing to debug."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes an empty graph."""
        with open(debug_path, "w") as file:
            file.write("digraph {}\n")


class GraphContext:
    """Context manager: captures what happens inside into the graph given first."""

    default_capture_stream: torch.Stream | None = None

    def __init__(
        self, device_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "relaxed"
    ) -> None:
        self._graph = device_graph
        self._arguments = (pool, capture_error_mode)
        self._stream = stream_context(stream if stream is not None else Stream())

    def __enter__(self) -> None:
        _lazy_init()
        torch.accelerator.synchronize()
        self._stream.__enter__()
        self._graph.capture_begin(*self._arguments)

    def __exit__(self, *exception: Any) -> None:
        self._graph.capture_end()
        self._stream.__exit__(*exception)


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """The callables themselves: a graph of work that is done at once would be no faster."""
    return callables
