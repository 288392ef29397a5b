"""Torch's own, where a plugin has put something else in its place that torch's own does better."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._patching import Patch, Surface

surface = Surface("torch's own")


@surface.discover
def device_type(_ctx: Context) -> Iterator[Patch]:
    """`torch.device` is torch's own type (torch_npu for torch 2.1 has a class in front of it)."""
    import torch

    if torch.device is not torch._C.device:
        yield Patch("torch:device", lambda _ctx, _found: torch._C.device, _reason(device_type), "replace")


@surface.discover
def pickle(ctx: Context) -> Iterator[Patch]:
    """A tensor is pickled as torch does it (torch_npu for torch 2.7 writes classes that nobody else has)."""
    import torch

    if ctx.vendor.indexed and not ctx.vendor.identity and not _is_torchs(torch.Tensor.__reduce_ex__):
        yield Patch("torch:Tensor.__reduce_ex__", _reduce_ex, _reason(pickle))


def _is_torchs(function: Any) -> bool:
    return str(function.__module__).partition(".")[0] == "torch"


def _reduce_ex(ctx: Context, original: Any) -> Any:
    import torch
    from torch._tensor import _rebuild_from_type_v2
    from torch.overrides import handle_torch_function, has_torch_function_unary

    def __reduce_ex__(self: Any, proto: Any) -> Any:
        if not ctx.active or not ctx.owns(self.device):
            return original(self, proto)
        state = torch._utils._get_obj_state(self)
        if type(self) is torch.Tensor and not state:
            return self._reduce_ex_internal(proto)
        if has_torch_function_unary(self):
            return handle_torch_function(torch.Tensor.__reduce_ex__, (self,), self, proto)
        function, arguments = self._reduce_ex_internal(proto)
        return _rebuild_from_type_v2, (function, type(self), arguments, state)

    return __reduce_ex__


def _reason(find: Any) -> str:
    return (find.__doc__ or "").strip()
