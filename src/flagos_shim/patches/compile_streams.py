"""Streams and events in compiled code on a back end without an accelerator, whose stream torch itself does not know."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface

tracing = Surface("compile_streams", after="torch._dynamo")
compiling = Surface("compile_streams_inductor")
surface = (tracing, compiling)


@tracing.wrap("torch._dynamo.variables.streams:SymbolicStreamState.__init__", optional=True)
def stream_state(ctx: Context, original: Any) -> Any:
    """Dynamo knows the stream in which compiled code begins, which it asks of the accelerator only."""
    if ctx.vendor.indexed:
        return original

    def __init__(self: Any) -> None:
        original(self)
        if not ctx.active or self.cur_stream_stack:
            return
        import torch
        from torch._dynamo.graph_bytecode_inputs import register_user_object, reset_user_object_tracking
        from torch._dynamo.source import CurrentStreamSource
        from torch._dynamo.variables.lazy import LazyVariableTracker

        reset_user_object_tracking()  # torch counts on the current stream being the first
        stream = torch.cuda.current_stream()
        source = CurrentStreamSource(stream.device)
        index = register_user_object(stream, source)
        current: Any = LazyVariableTracker.create(stream, source=source)
        current.user_object_index = index
        self.cur_stream_stack.append(current)

    return __init__


@tracing.wrap(
    "torch._dynamo.utils:get_current_stream", also=("torch._dynamo.guards:get_current_stream",), optional=True
)
def current_stream(ctx: Context, original: Any) -> Any:
    """Compiled code finds the stream in which it is called."""
    if ctx.vendor.indexed:
        return original
    import torch

    def get_current_stream(device: Any) -> Any:
        return torch.cuda.current_stream() if ctx.active else original(device)

    return get_current_stream


_VARIABLES = "torch._dynamo.variables.streams"
_NOTHING_TO_DO = {
    "StreamVariable": ("wait_event", "wait_stream", "synchronize"),
    "EventVariable": ("wait", "synchronize"),
}


@tracing.wrap(f"{_VARIABLES}:StreamContextVariable.__init__", optional=True)
def stream_context(ctx: Context, original: Any) -> Any:
    """`with torch.cuda.stream(s)` leaves no mark in the graph, which compilers would make an accelerator's code of."""
    if ctx.vendor.indexed:
        return original

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if ctx.active:
            self.target_values = {}

    return __init__


def _in_order(kind: str) -> None:
    @tracing.wrap(f"{_VARIABLES}:{kind}.call_method", optional=True)
    def call_method(ctx: Context, original: Any) -> Any:
        """Waiting for a stream or an event of the host's is nothing to do, and is not in the graph."""
        if ctx.vendor.indexed:
            return original

        def call_method(self: Any, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
            if not ctx.active or name not in _NOTHING_TO_DO[kind]:
                return original(self, tx, name, args, kwargs)
            from torch._dynamo.variables.constant import ConstantVariable

            return ConstantVariable.create(None)

        return call_method


for _kind in _NOTHING_TO_DO:
    _in_order(_kind)


@compiling.wrap("torch:_TorchCompileInductorWrapper.__call__")
def inductor(ctx: Context, original: Any) -> Any:
    """A graph that records an event is run by eager kernels, since inductor records them for accelerators only."""
    if ctx.vendor.indexed:
        return original

    def __call__(self: Any, model_: Any, inputs_: Any) -> Any:
        if not ctx.active or all(str(node.target) != "streams.record_event" for node in model_.graph.nodes):
            return original(self, model_, inputs_)
        import torch

        ctx.log.info("torch.compile: a graph that records an event is run by eager kernels (aot_eager) here.")
        return torch._dynamo.lookup_backend("aot_eager")(model_, inputs_)

    return __call__
