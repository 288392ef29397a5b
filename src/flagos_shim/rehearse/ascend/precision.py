"""Half precision on the host, where the CPU's kernels refuse it or take a hundred times as long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

HALF = (torch.float16, torch.bfloat16)

# The CPU computes the derivative of a float16 convolution without its fast library.
SLOW_IN_FLOAT16 = frozenset(("convolution_backward", "convolution_backward_overrideable"))


def in_full_precision(compute: Callable[..., Any], dtypes: tuple[torch.dtype, ...]) -> Callable[..., Any]:
    """Return ``compute`` in float32 where the first tensor is of one of ``dtypes``, with results of that data type.

    Under autocast an operator may also get float32 weights beside such an input; the chip's kernels cast them, the
    CPU's refuse them.
    """

    def whole(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [whole(item) for item in value]
        return value.float() if isinstance(value, torch.Tensor) and value.dtype in dtypes else value

    def run(first: Any, *args: Any, **kwargs: Any) -> Any:
        if first.dtype not in dtypes:
            return compute(first, *args, **kwargs)
        results = compute(whole(first), *map(whole, args), **{name: whole(value) for name, value in kwargs.items()})
        if isinstance(results, torch.Tensor):
            return results.to(first.dtype)
        return tuple(r.to(first.dtype) if r is not None and r.is_floating_point() else r for r in results)

    return run
