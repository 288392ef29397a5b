"""``torch.cuda.memory``: the caching allocator's switches and lists that vendors do not have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import ADVICE, find, index_of, stand_in, unsupported

ADVICE.update(
    {
        "caching_allocator_enable": "set the vendor's variable for PYTORCH_NO_CUDA_MEMORY_CACHING before the start",
        "CUDAPluggableAllocator": "use the vendor's own allocator",
        "MemPool": "let the caching allocator pool the memory",
        "use_mem_pool": "let the caching allocator pool the memory",
        "change_current_allocator": "use the vendor's own allocator",
        "memory._use_uvm": "keep in host memory what does not fit",
        "memory._host_allocator": "use Tensor.pin_memory",
        "memory._CUDAAllocator": "use the vendor's own allocator",
        "memory._get_current_allocator": "use the vendor's own allocator",
    }
)


@stand_in("torch.cuda.memory:caching_allocator_enable")
def caching_allocator_enable(ctx: Context, original: Any) -> Any:
    """accepts True; the vendor's caching allocator cannot be switched off in a running process"""

    def caching_allocator_enable(value: bool = True) -> None:
        if not ctx.active:
            original(value)
        elif not value:
            raise unsupported(ctx, "caching_allocator_enable")

    return caching_allocator_enable


@stand_in("torch.cuda.memory:caching_allocator_disabled")
def caching_allocator_disabled(ctx: Context, original: Any) -> Any:
    """runs the block with the caching allocator left on, and says so in the log"""

    @contextlib.contextmanager
    def caching_allocator_disabled() -> Iterator[None]:
        if not ctx.active:
            with original():
                yield
            return
        ctx.log.info("The caching allocator of %s stays on: it cannot be switched off.", ctx.vendor.title)
        yield

    return caching_allocator_disabled


@stand_in("torch.cuda.memory:list_gpu_processes")
def list_gpu_processes(ctx: Context, original: Any) -> Any:
    """the processes that the vendor's SMI tool lists"""
    from .cuda_telemetry import chip_of

    def list_gpu_processes(device: Any = None) -> str:
        if not ctx.active:
            return str(original(device))
        index = index_of(ctx, device)
        index = ctx.module.current_device() if index is None else index
        chip, reason = chip_of(ctx, index)
        lines = [f"GPU:{index}"]
        if chip is None or chip.processes is None:
            return "\n".join([*lines, reason or "the vendor's tool does not list processes"])
        for process in chip.processes:
            used = "an unknown amount" if process.memory_used is None else f"{process.memory_used / 1024**2:>12.3f} MB"
            lines.append(f"process {process.pid!s:>10} uses {used} GPU memory")
        return "\n".join(lines if chip.processes else [*lines, "no processes are running"])

    return list_gpu_processes


@stand_in("torch.cuda:ipc_collect")
def ipc_collect(ctx: Context, original: Any) -> Any:
    """asked of the vendor; nothing to collect where it shares no memory between processes"""
    ask = find(ctx, "ipc_collect")

    def ipc_collect() -> None:
        if not ctx.active:
            original()
        elif ask is not None:
            ask()

    return ipc_collect


@stand_in("torch.cuda.memory:get_allocator_backend")
def get_allocator_backend(ctx: Context, original: Any) -> Any:
    """`native`, which is what the vendor's caching allocator is modelled on"""
    ask = find(ctx, "get_allocator_backend")

    def get_allocator_backend() -> str:
        if not ctx.active:
            return str(original())
        return "native" if ask is None else str(ask())

    return get_allocator_backend


@stand_in("torch.cuda.memory:_set_memory_metadata")
def set_memory_metadata(ctx: Context, original: Any) -> Any:
    """remembered; the vendor's snapshots do not carry it"""

    def _set_memory_metadata(metadata: str) -> None:
        if ctx.active:
            ctx.remembered["memory_metadata"] = metadata
        else:
            original(metadata)

    return _set_memory_metadata


@stand_in("torch.cuda.memory:_get_memory_metadata")
def get_memory_metadata(ctx: Context, original: Any) -> Any:
    """what was set"""

    def _get_memory_metadata() -> str:
        return str(ctx.remembered.get("memory_metadata", "") if ctx.active else original())

    return _get_memory_metadata


@stand_in("torch.cuda.memory:host_memory_stats_as_nested_dict")
def host_memory_stats(ctx: Context, original: Any) -> Any:
    """asked of the vendor; empty where it does not count pinned memory"""
    ask = find(ctx, "host_memory_stats_as_nested_dict")

    def host_memory_stats_as_nested_dict() -> dict[str, Any]:
        if not ctx.active:
            return dict(original())
        return {} if ask is None else dict(ask())

    return host_memory_stats_as_nested_dict


@stand_in("torch.cuda.memory:reset_accumulated_host_memory_stats", "torch.cuda.memory:reset_peak_host_memory_stats")
def reset_host(ctx: Context, original: Any) -> Any:
    """asked of the vendor; nothing to reset where it does not count pinned memory"""
    ask = find(ctx, original.__name__)

    def reset() -> None:
        if not ctx.active:
            original()
        elif ask is not None:
            ask()

    return reset


@contextlib.contextmanager
def _staying(ctx: Context) -> Iterator[None]:
    """Keep the current device, which torch_npu's calls about the limit of another device move."""
    before = ctx.module.current_device()
    try:
        yield
    finally:
        if ctx.module.current_device() != before:
            ctx.module.set_device(before)


@stand_in("torch.cuda.memory:set_per_process_memory_fraction", needs="set_per_process_memory_fraction")
def set_memory_fraction(ctx: Context, original: Any) -> Any:
    """the vendor's limit"""
    give = find(ctx, "set_per_process_memory_fraction")

    def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
        if not ctx.active:
            original(fraction, device)
            return
        index = index_of(ctx, device)
        index = ctx.module.current_device() if index is None else index
        with _staying(ctx):
            give(fraction, index)
        ctx.remembered[f"memory_fraction:{index}"] = fraction

    return set_per_process_memory_fraction


@stand_in("torch.cuda.memory:get_per_process_memory_fraction")
def get_memory_fraction(ctx: Context, original: Any) -> Any:
    """what was set, 1.0 where nothing was"""
    ask = find(ctx, "get_per_process_memory_fraction")

    def get_per_process_memory_fraction(device: Any = None) -> float:
        if not ctx.active:
            return float(original(device))
        index = index_of(ctx, device)
        index = ctx.module.current_device() if index is None else index
        if ask is None:
            return float(ctx.remembered.get(f"memory_fraction:{index}", 1.0))
        with _staying(ctx):
            return float(ask(index))

    return get_per_process_memory_fraction
