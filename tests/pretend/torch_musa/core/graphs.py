"""Graph capture under the vendor's names."""

from __future__ import annotations

from typing import Any

from ._graphs import (
    Graph,
    GraphContext,
    _graph_pool_handle,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)

__all__ = [
    "MUSAGraph",
    "_graph_pool_handle",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


class MUSAGraph(Graph):
    """A captured piece of work."""


class graph(GraphContext):
    """Context manager: captures what happens inside."""

    def __init__(
        self, musa_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "relaxed"
    ) -> None:
        super().__init__(musa_graph, pool, stream, capture_error_mode)
