"""``torch.cuda.nvtx`` and ``torch.cuda.cudart()``: marks in the vendor's trace, and the calls of CUDA's runtime."""

from __future__ import annotations

import enum
import itertools
import threading
from typing import Any

from .._context import Context
from .._cuda_names import find, stand_in


class Marks:
    """Ranges and marks where the vendor has none: they appear in torch's own profiler as user annotations."""

    def __init__(self) -> None:
        self._open = threading.local()
        self._started: dict[int, Any] = {}
        self._numbers = itertools.count(1)

    def push(self, message: str) -> int:
        """Open a range; returns the depth it is at, counted from 0."""
        stack = self._open.__dict__.setdefault("stack", [])
        stack.append(_begin(message))
        return len(stack) - 1

    def pop(self) -> int:
        """Close the innermost range; returns its depth, -1 where none is open."""
        stack = self._open.__dict__.setdefault("stack", [])
        if not stack:
            return -1
        stack.pop().__exit__(None, None, None)
        return len(stack)

    def start(self, message: str) -> int:
        """Open a range that any thread may end; returns its handle."""
        number = next(self._numbers)
        self._started[number] = _begin(message)
        return number

    def end(self, number: int) -> None:
        """Close the range of that handle; an unknown one is ignored, as NVTX does."""
        found = self._started.pop(number, None)
        if found is not None:
            found.__exit__(None, None, None)

    def mark(self, message: str) -> None:
        """A range without duration."""
        _begin(message).__exit__(None, None, None)


def _begin(message: str) -> Any:
    import torch

    scope = torch.autograd.profiler.record_function(str(message))
    scope.__enter__()
    return scope


_MARKS = Marks()


def _marker(own: Any) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        """the vendor's marks, else a user annotation in torch's profiler"""
        theirs = find(ctx, f"nvtx.{original.__name__}")
        act = theirs or own

        def marker(*args: Any, **kwargs: Any) -> Any:
            if not ctx.active:
                return original(*args, **kwargs)
            if kwargs:
                args = (*args, *(kwargs.pop(name) for name in ("msg", "range_id") if name in kwargs))
            if args and isinstance(args[0], str):
                return act(args[0] or " ")  # an empty message is a mark to NVTX and an error to some
            return act(*args, **kwargs)

        return marker

    return build


for _name, _own in (
    ("range_push", _MARKS.push), ("range_pop", _MARKS.pop), ("range_start", _MARKS.start),
    ("range_end", _MARKS.end), ("mark", _MARKS.mark),
):  # fmt: skip
    stand_in(f"torch.cuda.nvtx:{_name}")(_marker(_own))


@stand_in("torch.cuda.nvtx:_device_range_start")
def device_range_start(ctx: Context, original: Any) -> Any:
    """a range on the host's side, since the vendor marks no streams"""

    def _device_range_start(msg: str, stream: int = 0) -> Any:
        return _MARKS.start(msg) if ctx.active else original(msg, stream)

    return _device_range_start


@stand_in("torch.cuda.nvtx:_device_range_end")
def device_range_end(ctx: Context, original: Any) -> Any:
    """ends such a range"""

    def _device_range_end(range_handle: Any, stream: int = 0) -> None:
        if ctx.active:
            _MARKS.end(range_handle)
        else:
            original(range_handle, stream)

    return _device_range_end


class Result(enum.IntEnum):
    """``cudart().cudaError``: the results of CUDA's runtime that Python code compares with."""

    success = 0
    errorInvalidValue = 1
    errorMemoryAllocation = 2
    errorNotReady = 600
    errorNotSupported = 801


_TEXTS = {
    Result.success: "no error",
    Result.errorInvalidValue: "invalid argument",
    Result.errorMemoryAllocation: "out of memory",
    Result.errorNotReady: "device not ready",
    Result.errorNotSupported: "operation not supported",
}


class Runtime:
    """``torch.cuda.cudart()``: the calls of CUDA's runtime that torch exposes to Python, on the vendor's device."""

    cudaError = Result

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def cudaGetErrorString(self, error: int) -> str:
        """CUDA's text for a result."""
        known = error in tuple(Result)
        return _TEXTS[Result(error)] if known else "unrecognized error code"

    def cudaProfilerStart(self) -> Result:
        """Success: the vendor's own profiler decides when it records."""
        return Result.success

    def cudaProfilerStop(self) -> Result:
        """Success; see cudaProfilerStart."""
        return Result.success

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:
        """Free and total device memory in bytes."""
        free, total = find(self._ctx, "mem_get_info")(device)
        return int(free), int(total)

    def cudaHostRegister(self, pointer: int, size: int, flags: int) -> Result:
        """Page-locks host memory where the vendor's runtime can, else says that it is not supported."""
        return self._ask("cudaHostRegister", pointer, size, flags)

    def cudaHostUnregister(self, pointer: int) -> Result:
        """Undoes cudaHostRegister."""
        return self._ask("cudaHostUnregister", pointer)

    def cudaStreamCreate(self, pointer: int) -> Result:
        """Makes a raw stream where the vendor's runtime can, else says that it is not supported."""
        return self._ask("cudaStreamCreate", pointer)

    def cudaStreamDestroy(self, stream: int) -> Result:
        """Undoes cudaStreamCreate."""
        return self._ask("cudaStreamDestroy", stream)

    def _ask(self, name: str, *arguments: int) -> Result:
        runtime = find(self._ctx, "cudart")
        theirs = self._ctx.vendor.renames.get(f"cudart.{name}", name)
        call = getattr(runtime(), theirs, None) if callable(runtime) else None
        if call is None:
            return Result.errorNotSupported
        try:
            return Result.success if int(call(*arguments)) == 0 else Result.errorInvalidValue
        except RuntimeError as error:  # CUDA's runtime returns a result and never raises
            self._ctx.log.info("%s: %s", name, error)
            return Result.errorNotSupported


@stand_in("torch.cuda:_cudart", verb="replace")
def runtime(ctx: Context, original: Any) -> Any:
    """memory, host registration and profiler calls of CUDA's runtime, on the vendor's device"""
    return Runtime(ctx)


@stand_in("torch.cuda:check_error")
def check_error(ctx: Context, original: Any) -> Any:
    """raises CudaError for a result of such a call, in CUDA's numbers"""

    def check_error(res: int) -> None:
        import torch

        kind: Any = torch.cuda.CudaError
        if not ctx.active or kind.__module__ == "torch.cuda":
            original(res)
            return
        # The vendor's class stands here, whose own numbers are others: it gets the text.
        runtime = Runtime(ctx)
        if res != runtime.cudaError.success:
            raise kind(f"{runtime.cudaGetErrorString(res)} ({res})")

    return check_error
