"""The caches that let a compiled program start warm: graphs with a stand-in are kept, and never taken for another's."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from .._context import Context
from .._patching import Surface
from .._twins import behind

graphs = Surface("compile_cache", after="torch._functorch._aot_autograd.autograd_cache")
keys = Surface("compile_cache_keys", after="torch._inductor.codecache")
surface = (graphs, keys)


@graphs.wrap("torch._functorch._aot_autograd.autograd_cache:check_node_safe", optional=True)
def check_node_safe(_ctx: Context, original: Any) -> Any:
    """A graph with a stand-in of torch's own builtin is as safe to keep as one with the builtin."""

    def check_node_safe(node: Any) -> None:
        # Torch takes every builtin for safe, and every other function by a list of names.
        if node.op != "call_function" or not isinstance(behind(node.target), BuiltinFunctionType):
            original(node)

    return check_node_safe


@keys.wrap("torch._inductor.codecache:FxGraphHashDetails.__init__", optional=True)
def details(ctx: Context, original: Any) -> Any:
    """The same graph that names `cuda` is another program on another back end, and keeps an entry of its own."""
    if ctx.vendor.identity:
        return original

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if ctx.active:
            self.flagos_shim = ctx.vendor.name  # all that the object holds goes into the key

    return __init__
