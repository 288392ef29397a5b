"""``torch.cuda.random``: the vendor's generators, one a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._context import Context
from .._cuda_names import find, stand_in


class Generators(Sequence[Any]):
    """``torch.cuda.default_generators``: one a device; taking one starts the device, as in CUDA only that fills it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def __len__(self) -> int:
        return int(self._ctx.module.device_count())

    def __getitem__(self, index: Any) -> Any:
        if not len(self._ctx.module.default_generators):  # which the plugin fills when it starts
            import torch

            torch.cuda._lazy_init()
        return tuple(self._ctx.module.default_generators)[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __repr__(self) -> str:
        return f"<the default generators of {len(self)} devices of {self._ctx.vendor.title}>"


@stand_in("torch.cuda:default_generators", verb="replace")
def default_generators(ctx: Context, original: Any) -> Any:
    """one a device; taking one starts the device"""
    return Generators(ctx) if find(ctx, "default_generators") is not None else original
