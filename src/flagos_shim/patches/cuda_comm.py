"""``torch.cuda.comm`` and ``torch.cuda.nccl``: copies and sums between the devices of one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import stand_in
from .._patching import Patch

# Programs, and torch's own hooks, ask for at least this; DistributedDataParallel's bfloat16 hook for one.
_VERSION = (2, 10, 3)
_SUM, _PROD, _MAX, _MIN, _AVG = range(5)  # ncclRedOp_t


def parallel(ctx: Context) -> Iterator[Patch]:
    """The primitives behind torch.nn.parallel.comm, which torch.cuda.comm and DataParallel stand on."""
    for name, build in (
        ("_broadcast", _broadcast), ("_broadcast_out", _broadcast_out), ("_scatter", _scatter),
        ("_broadcast_coalesced", _broadcast_coalesced), ("_scatter_out", _scatter_out), ("_gather", _gather),
        ("_gather_out", _gather_out),
    ):  # fmt: skip
        # A plugin's own would start its collectives for all cards of the process; copies need nothing.
        yield Patch(f"torch._C:{name}", build, "Copies between the vendor's devices.", "provide")
    also_apply = "torch.nn.parallel.parallel_apply:_get_device_index"
    yield Patch(also_apply, _any_spelling, "Takes `cuda:0` and devices, as scatter and replicate do.")
    if not ctx.vendor.indexed:
        comm = "torch.nn.parallel.comm"
        yield Patch(f"{comm}:_get_device_index", _any_spelling, "`cuda:0` is device 0.")
        also = ("torch.cuda.comm:reduce_add",)
        yield Patch(f"{comm}:reduce_add", _reduce_add, "Adds what is on the host, which torch refuses.", also=also)


def _any_spelling(ctx: Context, original: Any) -> Any:
    def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> Any:
        if not ctx.active or device is None or isinstance(device, int):
            return original(device, optional, allow_cpu)
        index = ctx.ordinal(device)
        return ctx.module.current_device() if index is None else index

    return _get_device_index


def _reduce_add(ctx: Context, original: Any) -> Any:
    def reduce_add(inputs: Any, destination: Any = None) -> Any:
        if not ctx.active:
            return original(inputs, destination)
        if any(tensor.shape != inputs[0].shape for tensor in inputs):
            raise ValueError("reduce_add expects all inputs to have the same shape")
        return inputs[0] if len(inputs) == 1 else _reduced(inputs, _SUM)

    return reduce_add


def _place(ctx: Context, device: Any) -> Any:
    return ctx.translate(device)


def _broadcast(ctx: Context, original: Any) -> Any:
    def _broadcast(tensor: Any, devices: Any) -> list[Any]:
        return [tensor.to(_place(ctx, device)) for device in devices]

    return _broadcast


def _broadcast_out(ctx: Context, original: Any) -> Any:
    def _broadcast_out(tensor: Any, out: Any) -> list[Any]:
        return [given.copy_(tensor) for given in out]

    return _broadcast_out


def _broadcast_coalesced(ctx: Context, original: Any) -> Any:
    def _broadcast_coalesced(tensors: Any, devices: Any, buffer_size: int) -> list[list[Any]]:
        return [[tensor.to(_place(ctx, device)) for tensor in tensors] for device in devices]

    return _broadcast_coalesced


def _scatter(ctx: Context, original: Any) -> Any:
    def _scatter(tensor: Any, devices: Any, chunk_sizes: Any = None, dim: int = 0, streams: Any = None) -> list[Any]:
        chunks = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
        return [chunk.to(_place(ctx, device), non_blocking=True) for chunk, device in zip(chunks, devices)]

    return _scatter


def _scatter_out(ctx: Context, original: Any) -> Any:
    def _scatter_out(tensor: Any, out: Any, dim: int = 0, streams: Any = None) -> list[Any]:
        chunks = tensor.split([given.size(dim) for given in out], dim)
        return [given.copy_(chunk) for given, chunk in zip(out, chunks)]

    return _scatter_out


def _gather(ctx: Context, original: Any) -> Any:
    import torch

    def _gather(tensors: Any, dim: int = 0, destination: Any = None) -> Any:
        if destination == -1:
            target = torch.device("cpu")
        else:
            target = torch.device(_place(ctx, torch.cuda.current_device() if destination is None else destination))
        return torch.cat([tensor.to(target) for tensor in tensors], dim)

    return _gather


def _gather_out(ctx: Context, original: Any) -> Any:
    def _gather_out(tensors: Any, out: Any, dim: int = 0) -> Any:
        for part, tensor in zip(out.split([t.size(dim) for t in tensors], dim), tensors):
            part.copy_(tensor)
        return out

    return _gather_out


def _reduced(inputs: Any, op: int) -> Any:
    total = inputs[0].clone()
    for tensor in inputs[1:]:
        other = tensor.to(total.device)
        if op in (_SUM, _AVG):
            total += other
        elif op == _PROD:
            total *= other
        else:
            total = total.maximum(other) if op == _MAX else total.minimum(other)
    return total / len(inputs) if op == _AVG else total


@stand_in("torch.cuda.nccl:all_reduce")
def all_reduce(ctx: Context, original: Any) -> Any:
    """sums and copies between the devices of this process"""

    def all_reduce(inputs: Any, outputs: Any = None, op: int = _SUM, streams: Any = None, comms: Any = None) -> None:
        if not ctx.active:
            original(inputs, outputs, op, streams, comms)
            return
        total = _reduced(inputs, op)
        for out in inputs if outputs is None else outputs:
            out.copy_(total)

    return all_reduce


@stand_in("torch.cuda.nccl:reduce")
def reduce(ctx: Context, original: Any) -> Any:
    """a sum on the root's device"""

    def reduce(
        inputs: Any, output: Any = None, root: int = 0, op: int = _SUM, streams: Any = None, comms: Any = None,
        *, outputs: Any = None,
    ) -> None:  # fmt: skip
        if not ctx.active:
            original(inputs, output, root, op, streams, comms, outputs=outputs)
            return
        given = output if outputs is None else outputs
        target = inputs[root] if given is None else given[root] if isinstance(given, (list, tuple)) else given
        target.copy_(_reduced(inputs, op))

    return reduce


@stand_in("torch.cuda.nccl:broadcast")
def broadcast(ctx: Context, original: Any) -> Any:
    """copies from the root's device"""

    def broadcast(inputs: Any, root: int = 0, streams: Any = None, comms: Any = None) -> None:
        if not ctx.active:
            original(inputs, root, streams, comms)
            return
        for tensor in inputs:
            if tensor is not inputs[root]:
                tensor.copy_(inputs[root])

    return broadcast


@stand_in("torch.cuda.nccl:all_gather")
def all_gather(ctx: Context, original: Any) -> Any:
    """copies of all inputs, one after the other, on every device"""
    import torch

    def all_gather(inputs: Any, outputs: Any, streams: Any = None, comms: Any = None) -> None:
        if not ctx.active:
            original(inputs, outputs, streams, comms)
            return
        for out in outputs:
            out.copy_(torch.cat([tensor.reshape(-1).to(out.device) for tensor in inputs]).view_as(out))

    return all_gather


@stand_in("torch.cuda.nccl:reduce_scatter")
def reduce_scatter(ctx: Context, original: Any) -> Any:
    """a sum, cut into one part for each device"""

    def reduce_scatter(inputs: Any, outputs: Any, op: int = _SUM, streams: Any = None, comms: Any = None) -> None:
        if not ctx.active:
            original(inputs, outputs, op, streams, comms)
            return
        parts = _reduced(inputs, op).reshape(-1).chunk(len(outputs))
        for out, part in zip(outputs, parts):
            out.copy_(part.view_as(out))

    return reduce_scatter


@stand_in("torch.cuda.nccl:is_available")
def is_available(ctx: Context, original: Any) -> Any:
    """false: there is no NCCL; what asks this then copies and adds by itself"""

    def is_available(tensors: Any) -> bool:
        return False if ctx.active else bool(original(tensors))

    return is_available


@stand_in("torch.cuda.nccl:version")
def version(ctx: Context, original: Any) -> Any:
    """2.10, whose collectives (bfloat16, averages) the vendors have; the vendor's library counts in its own way"""

    def version() -> Any:
        return _VERSION if ctx.active else original()

    return version
