"""``torch.backends.cuda``: switches of CUDA's libraries, which no vendor has: accepted, remembered, harmless."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._device_type import is_internal
from .._patching import Build, Patch, Surface

surface = Surface("backends")

# Plans that CUDA keeps of each device, where the program does not say; torch's own number (since CUDA 10).
_PLANS = 4096


@surface.wrap("torch.backends.cuda:is_built")
def is_built(ctx: Context, original: Any) -> Any:
    """true for a program, as on ROCm: what it asks for is there; torch itself asks for CUDA's own libraries"""

    def is_built() -> bool:
        return True if ctx.active and not is_internal(sys._getframe(1)) else bool(original())

    return is_built


@surface.replace("torch.backends.cuda:cuFFTPlanCache.size")
def size(ctx: Context, original: Any) -> Any:
    """`cufft_plan_cache.size` is 0: no plan of cuFFT's is kept."""

    def size(self: Any) -> int:
        return 0 if ctx.active else int(original.__get__(self))

    def refuse(self: Any, value: Any) -> None:
        original.__set__(self, value)  # raises in torch's words: it is read-only

    return property(size, refuse)


@surface.replace("torch.backends.cuda:cuFFTPlanCache.max_size")
def max_size(ctx: Context, original: Any) -> Any:
    """`cufft_plan_cache.max_size` is what was set, device by device."""

    def get(self: Any) -> int:
        if not ctx.active:
            return int(original.__get__(self))
        return int(ctx.remembered.get(f"cufft_max_size:{self.device_index}", _PLANS))

    def set_(self: Any, value: Any) -> None:
        if not ctx.active:
            original.__set__(self, value)
            return
        if value.__class__ is bool or not isinstance(value, int) or value < 0:
            raise RuntimeError(f"cufft_plan_cache.max_size must be a number of plans, 0 or more, but got {value!r}.")
        ctx.remembered[f"cufft_max_size:{self.device_index}"] = value

    return property(get, set_)


@surface.wrap("torch.backends.cuda:cuFFTPlanCache.clear")
def clear(ctx: Context, original: Any) -> Any:
    """`cufft_plan_cache.clear()` has nothing to clear."""

    def clear(self: Any) -> None:
        if not ctx.active:
            original(self)

    return clear


def _kept(setter: str, getter: str) -> None:
    """Declare a choice among CUDA's libraries, which torch refuses where it is not built with them."""

    @surface.wrap(f"torch._C:{setter}", optional=True)
    def choose(ctx: Context, original: Any) -> Any:
        """A choice among CUDA's libraries is accepted and remembered."""

        def choose(value: Any) -> None:
            if ctx.active:
                ctx.remembered[setter] = value
            else:
                original(value)

        return choose

    @surface.wrap(f"torch._C:{getter}", optional=True)
    def chosen(ctx: Context, original: Any) -> Any:
        """What was chosen; torch's own default where nothing was."""

        def chosen() -> Any:
            found = ctx.remembered.get(setter) if ctx.active else None
            return original() if found is None else found

        return chosen


for _library in ("linalg", "blas", "rocm_fa"):
    _kept(f"_set_{_library}_preferred_backend", f"_get_{_library}_preferred_backend")


@surface.discover
def workspaces(_ctx: Context) -> Iterator[Patch]:
    """`cublas_workspace_size()` is what was set, and 0 before: none is set aside."""
    import torch

    why = (workspaces.__doc__ or "").strip()
    for name in ("cublas", "cublaslt"):
        if hasattr(torch.backends.cuda, f"{name}_workspace_size"):  # new in torch 2.13
            yield Patch(f"torch.backends.cuda:{name}_workspace_size", _workspace(name), why)


def _workspace(name: str) -> Build:
    def build(ctx: Context, original: Any) -> Any:
        def workspace_size(size: int | None = None) -> int:
            if not ctx.active:
                return int(original(size))
            if size is not None:
                if size.__class__ is bool or not isinstance(size, int) or size < 0:
                    raise RuntimeError(f"{name}_workspace_size: expected bytes, 0 or more, but got {size!r}.")
                ctx.remembered[f"{name}_workspace"] = size
            return int(ctx.remembered.get(f"{name}_workspace", 0))

        return workspace_size

    return build
