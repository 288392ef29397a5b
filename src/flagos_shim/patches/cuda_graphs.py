"""``torch.cuda`` graphs and memory pools: the vendor's classes, taking the arguments that CUDA's take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import ADVICE, find, parameters, stand_in, unsupported
from .._patching import MISSING, Patch

_EAGER = "run the step eagerly; NotImplementedError is a RuntimeError, so a fallback written for that runs"
for _name in ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle"):
    ADVICE[_name] = ADVICE[f"graphs.{_name}"] = _EAGER
ADVICE["GreenContext"] = ADVICE["green_contexts.GreenContext"] = "use streams; the vendor does not partition its cores"

_CLASSES = ("CUDAGraph", "graph", "MemPool")


def vendor_classes(ctx: Context) -> Iterator[Patch]:
    """Constructors of the vendor's graph and pool classes accept CUDA's argument names."""
    import torch

    if ctx.vendor.package is None:
        return
    for name in _CLASSES:
        theirs, ours = find(ctx, name), getattr(torch.cuda, name, None)
        if not isinstance(theirs, type) or not isinstance(ours, type):
            continue
        for method in ("__new__", "__init__"):
            wanted = _parameters(vars(ours).get(method, vars(ours).get("__new__", MISSING)))
            found = _parameters(next((vars(c)[method] for c in theirs.__mro__ if method in vars(c)), MISSING))
            if wanted is not None and found is not None and set(wanted) - set(found):
                place = f"{theirs.__module__}:{theirs.__qualname__}.{method}"
                build = _accepting(name, method, wanted, list(found))
                yield Patch(place, build, "Accepts CUDA's arguments.", "replace")


def _parameters(function: Any) -> dict[str, Any] | None:
    """Names and defaults of a method, without self."""
    found = parameters(function.__func__ if isinstance(function, staticmethod) else function)
    return None if found is None else dict(list(found.items())[1:])


def _accepting(name: str, method: str, wanted: dict[str, Any], found: list[str]) -> Any:
    """Maps CUDA's argument names to the vendor's by position; what the vendor lacks may have CUDA's default only."""
    order = list(wanted)
    rename = {o: found[i] for i, o in enumerate(order) if o not in found and i < len(found) and found[i] not in wanted}

    def build(ctx: Context, original: Any) -> Any:
        def make(self: Any, *args: Any, **kwargs: Any) -> Any:
            if ctx.active:
                for argument, value in list(zip(order[len(found) :], args[len(found) :])) + list(kwargs.items()):
                    if argument in wanted and argument not in found:
                        kwargs.pop(argument, None)
                        if argument in rename:
                            kwargs[rename[argument]] = value
                        elif value != wanted[argument]:
                            raise unsupported(ctx, f"{name}({argument}={value!r})")
                args = args[: len(found)]
            return original(self, *args, **kwargs)

        return staticmethod(make) if method == "__new__" else make

    return build


@stand_in("torch.cuda.graphs:is_current_stream_capturing")
def is_current_stream_capturing(ctx: Context, original: Any) -> Any:
    """asked of the vendor; false before the first device use, and where it has no graphs"""
    ask = find(ctx, "is_current_stream_capturing")

    def is_current_stream_capturing() -> bool:
        if not ctx.active:
            return bool(original())
        return ask is not None and ctx.module.is_initialized() and bool(ask())

    return is_current_stream_capturing
