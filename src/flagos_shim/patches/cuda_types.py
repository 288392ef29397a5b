"""The old type names: ``torch.cuda.FloatTensor`` and its kin, typed storages, ``Tensor.type``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import find, stand_in
from .._patching import Patch

_PREFIX = "torch.cuda."


def tensor_types(ctx: Context) -> Iterator[Patch]:
    """`x.type()` says `torch.cuda.FloatTensor`, and takes it."""
    if ctx.vendor.indexed:
        yield Patch("torch:Tensor.type", _type, (tensor_types.__doc__ or "").strip())


def _type(ctx: Context, original: Any) -> Any:
    import torch

    own = f"{ctx.vendor.namespace}."

    def type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if not ctx.active:
            return original(self, dtype, non_blocking, **kwargs)
        if dtype is None:
            name = original(self)
            return _PREFIX + name[len(own) :] if isinstance(name, str) and name.startswith(own) else name
        if isinstance(dtype, str) and dtype.startswith(_PREFIX):
            found: Any = torch.cuda
            for part in dtype[len(_PREFIX) :].split("."):
                found = getattr(found, part, None)
            dtype = dtype if found is None else found
        return original(self, dtype, non_blocking, **kwargs)

    return type


def _typed_storage(name: str, dtype: str) -> None:
    @stand_in(f"torch.cuda:{name}", verb="replace")
    def build(ctx: Context, original: Any) -> Any:
        """a typed storage like the vendor's others"""
        import torch

        theirs = find(ctx, name)
        sibling = find(ctx, "FloatStorage")
        if theirs is not None or sibling is None:
            return theirs
        value = torch._utils.classproperty(lambda cls: getattr(torch, dtype))
        return type(name, sibling.__bases__, {"dtype": value, "_dtype": value, "__module__": "torch.cuda"})


_typed_storage("ComplexFloatStorage", "cfloat")
_typed_storage("ComplexDoubleStorage", "cdouble")
