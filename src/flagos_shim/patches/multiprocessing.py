"""``torch.multiprocessing``: tensors of the device handed to another process."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._patching import Patch, Surface

surface = Surface("multiprocessing")

_REDUCERS = "multiprocessing.reduction:ForkingPickler._extra_reducers"


def rebuild(content: bytes, device: str, kind: Any, requires_grad: bool) -> Any:
    """Make the tensor in the process that receives it.

    Args:
        content: the file that ``torch.save`` makes of its copy on the CPU.
        device: where it was, as a CUDA program names it.
        kind: ``torch.Tensor`` or ``torch.nn.Parameter``.
        requires_grad: as it was.
    """
    import torch

    tensor = torch.load(io.BytesIO(content), weights_only=True).to(device)
    if issubclass(kind, torch.nn.Parameter):
        return kind(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


@surface.discover
def reducers(ctx: Context) -> Iterator[Patch]:
    """Where the vendor cannot share device memory between processes, the tensor travels as a copy."""
    import torch

    if ctx.vendor.indexed and not ctx.vendor.identity:
        for kind in (torch.Tensor, torch.nn.Parameter):
            yield Patch(_REDUCERS, _reducer(kind), (reducers.__doc__ or "").strip(), "enrol")


def _reducer(kind: Any) -> Any:
    import torch

    def build(ctx: Context, table: Any) -> Any:
        original = table[kind]

        shares = original.__module__.partition(".")[0] != "torch"  # torch itself knows how for CUDA only

        def reduce(tensor: Any) -> Any:
            refused = tensor.requires_grad and not tensor.is_leaf  # torch's own rule, whatever the device
            if refused or not ctx.active or ctx.kinds[tensor.device] != ctx.device_type:
                return original(tensor)
            reason = "its plugin does not"
            if shares:
                try:
                    return original(tensor)
                except (RuntimeError, NotImplementedError) as error:
                    reason = str(error).partition("\n")[0]
            ctx.log.info("%s shares no memory between processes, a copy is sent: %s", ctx.vendor.title, reason)
            # Not through shared memory: that would have to outlive the start of the process it is handed to.
            file = io.BytesIO()
            torch.save(tensor.detach().cpu(), file)
            return rebuild, (file.getvalue(), f"cuda:{tensor.device.index}", type(tensor), tensor.requires_grad)

        return kind, reduce

    return build
