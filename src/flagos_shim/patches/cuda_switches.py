"""``torch.cuda`` switches that vendors do not have: accepted, remembered, harmless; and advice for what is refused."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._cuda_names import ADVICE, find, stand_in

_KERNELS = "write the kernel in Triton or in Python, or use the vendor's operator kit"
ADVICE.update(
    {
        "jiterator._create_jit_fn": _KERNELS,
        "jiterator._create_multi_output_jit_fn": _KERNELS,
        "_compile_kernel": _KERNELS,
        "current_solver_handle": "use torch.linalg",
        "current_blas_handle": "use torch.matmul",
        "gds.GdsFile": "read the file into host memory and copy it",
        "gds.gds_register_buffer": "read the file into host memory and copy it",
        "gds.gds_deregister_buffer": "read the file into host memory and copy it",
        "nccl.unique_id": "use torch.distributed, where `nccl` means the vendor's collectives",
        "nccl.init_rank": "use torch.distributed, where `nccl` means the vendor's collectives",
        "nccl.version": "torch.distributed works; the vendor's library has a version of its own",
        "tunable.tune_gemm_in_file": "remove it: the vendor's library tunes itself",
        "tunable.mgpu_tune_gemm_in_file": "remove it: the vendor's library tunes itself",
    }
)

_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


@stand_in("torch.cuda:set_sync_debug_mode")
def set_sync_debug_mode(ctx: Context, original: Any) -> Any:
    """given to the vendor, remembered where it has no such switch"""
    give = find(ctx, "set_sync_debug_mode")

    def set_sync_debug_mode(debug_mode: int | str) -> None:
        if not ctx.active:
            original(debug_mode)
            return
        mode = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
        if mode not in _DEBUG_MODES.values():
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        ctx.remembered["sync_debug_mode"] = mode
        if give is not None:
            give(mode)

    return set_sync_debug_mode


@stand_in("torch.cuda:get_sync_debug_mode")
def get_sync_debug_mode(ctx: Context, original: Any) -> Any:
    """what was set"""
    ask = find(ctx, "get_sync_debug_mode")

    def get_sync_debug_mode() -> int:
        if not ctx.active:
            return int(original())
        return int(ctx.remembered.get("sync_debug_mode", 0) if ask is None else ask())

    return get_sync_debug_mode


def _setting(setter: str, getter: str, default: Any) -> None:
    def build_setter(ctx: Context, original: Any) -> Any:
        """accepted and remembered; the vendor's library tunes itself"""
        give = find(ctx, f"tunable.{setter}")

        def set_(*args: Any, **kwargs: Any) -> Any:
            if not ctx.active:
                return original(*args, **kwargs)
            value = next(iter((*args, *kwargs.values())), True)
            ctx.remembered[getter] = value
            return None if give is None else give(value)

        return set_

    def build_getter(ctx: Context, original: Any) -> Any:
        """what was set"""

        def get() -> Any:
            return ctx.remembered.get(getter, default) if ctx.active else original()

        return get

    stand_in(f"torch.cuda.tunable:{setter}")(build_setter)
    stand_in(f"torch.cuda.tunable:{getter}")(build_getter)


_setting("enable", "is_enabled", False)
_setting("tuning_enable", "tuning_is_enabled", False)
_setting("record_untuned_enable", "record_untuned_is_enabled", False)
_setting("set_max_tuning_duration", "get_max_tuning_duration", 30)
_setting("set_max_tuning_iterations", "get_max_tuning_iterations", 100)
_setting("set_filename", "get_filename", "tunableop_results.csv")
_setting("set_rotating_buffer_size", "get_rotating_buffer_size", 0)


@stand_in("torch.cuda.tunable:set_numerical_check_tolerances", "torch.cuda.tunable:write_file_on_exit")
def accepted(ctx: Context, original: Any) -> Any:
    """accepted; nothing is tuned that it could apply to"""

    def accept(*args: Any, **kwargs: Any) -> None:
        if not ctx.active:
            original(*args, **kwargs)

    return accept


@stand_in("torch.cuda.tunable:get_results", "torch.cuda.tunable:get_validators")
def nothing(ctx: Context, original: Any) -> Any:
    """empty: nothing was tuned"""

    def get() -> Any:
        return () if ctx.active else original()

    return get


@stand_in("torch.cuda.tunable:read_file", "torch.cuda.tunable:write_file")
def no_file(ctx: Context, original: Any) -> Any:
    """false: there is nothing to read or write"""

    def file(*args: Any, **kwargs: Any) -> bool:
        return False if ctx.active else bool(original(*args, **kwargs))

    return file
