"""Operators that are not just the CPU's operator of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .host_memory import adopt, device_of, host_view, to_device, to_host

_empty = torch.ops.aten.empty_strided.default._op


def copy_(dst: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between any two of NPU and CPU tensors; the copy is complete on return."""
    host = dst if dst.is_cpu else host_view(dst)
    host.copy_(src if src.is_cpu else host_view(src))
    return dst


def _strides(x: torch.Tensor, memory_format: torch.memory_format | None) -> tuple[int, ...]:
    """Return the strides that a copy of ``x`` has."""
    wanted = memory_format or torch.preserve_format
    if x.is_contiguous() and wanted in (torch.preserve_format, torch.contiguous_format):
        return x.stride()
    return torch.empty_like(x if x.is_cpu else host_view(x), memory_format=wanted).stride()


def to_copy(
    x: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """Return a copy of ``x`` with another dtype, device or order of memory."""
    options: dict[str, Any] = {"pin_memory": True} if pin_memory else {}
    strides = _strides(x, memory_format)
    return copy_(_empty(x.size(), strides, dtype=dtype or x.dtype, device=device or x.device, **options), x)


def clone(x: torch.Tensor, *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    """Return a copy of ``x``."""
    return copy_(_empty(x.size(), _strides(x, memory_format), dtype=x.dtype, device=x.device), x)


def contiguous(x: torch.Tensor, *, memory_format: torch.memory_format = torch.contiguous_format) -> torch.Tensor:
    """Return ``x`` itself where it is contiguous, else a contiguous copy."""
    return x if x.is_contiguous(memory_format=memory_format) else x.clone(memory_format=memory_format)


def native_dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``x`` with dropout, and the mask of what was kept; the random numbers are the NPU generator's."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = torch.rand(x.shape, device=x.device) >= p
    return x * mask / (1 - p) if p < 1 else torch.zeros_like(x), mask


def matmul_backward(
    grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor, mask: list[bool]
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of ``a @ b``, an operator that only torch_npu has."""
    g, x, y = host_view(grad), host_view(a), host_view(b)
    if x.dim() == 1:
        g, x = g.unsqueeze(-1 if y.dim() == 1 else -2), x.unsqueeze(0)
    if y.dim() == 1:
        g, y = g.unsqueeze(-1), y.unsqueeze(-1)
    one = (g @ y.mH).sum_to_size(x.shape).reshape(a.shape) if mask[0] else None
    two = (x.mH @ g).sum_to_size(y.shape).reshape(b.shape) if mask[1] else None
    return tuple(None if t is None else to_device(t, a.device) for t in (one, two))


class _OnHost(torch.autograd.Function):
    """An operator and its derivative on host views; the tensors are kept, and checked for changes, by autograd."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], *flat: Any) -> Any:
        tensors = [t for t in flat if isinstance(t, torch.Tensor)]
        device = device_of(tensors)
        assert device is not None
        ctx.save_for_backward(*tensors)
        ctx.wanted = ctx.needs_input_grad[1:]
        leaves = [  # .data: all host views are windows of one array, and would share one count of changes
            to_host(t).data.requires_grad_(wanted) if isinstance(t, torch.Tensor) else t
            for t, wanted in zip(flat, ctx.wanted)
        ]
        with torch.enable_grad():
            outputs = run(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        ctx.leaves, ctx.outputs = leaves, outputs
        results = tuple(adopt(out.detach(), device) for out in outputs)
        ctx.mark_non_differentiable(*(r for r, out in zip(results, outputs) if not out.requires_grad))
        return results if len(results) > 1 else results[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        _ = ctx.saved_tensors  # raises where one of them was changed since
        device = device_of(grads)
        inputs = [leaf for leaf, wanted in zip(ctx.leaves, ctx.wanted) if wanted]
        pairs = [(o, to_host(g)) for o, g in zip(ctx.outputs, grads) if g is not None and o.requires_grad]
        found = iter(
            torch.autograd.grad([o for o, _ in pairs], inputs, [g for _, g in pairs], retain_graph=True, allow_unused=True)
        )
        assert device is not None
        return (None, *(adopt(next(found), device) if wanted else None for wanted in ctx.wanted))


def differentiable(op: torch._ops.OpOverload[..., Any]) -> Callable[..., Any]:
    """Return a kernel for an operator whose derivative torch_npu computes in its own way: ``op`` with the CPU's."""
    compute = op._op
    tensors = [i for i, argument in enumerate(op._schema.arguments) if str(argument.type) == "Tensor"]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        flat: list[Any] = []
        # A number that the program gave in the place of a tensor comes as a number.
        given = [torch.tensor(v) if i in tensors and not isinstance(v, torch.Tensor) else v for i, v in enumerate(args)]
        shape = [_flatten(value, flat) for value in given]
        names = {key: _flatten(value, flat) for key, value in kwargs.items()}

        def run(*leaves: Any) -> Any:
            taken = iter(leaves)
            positional = [_unflatten(length, taken) for length in shape]
            return compute(*positional, **{key: _unflatten(length, taken) for key, length in names.items()})

        return _OnHost.apply(run, *flat)

    return kernel


def _flatten(value: Any, into: list[Any]) -> int | None:
    """Append ``value``, or the items of a list, to ``into``; return the length of the list."""
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        into.extend(value)
        return len(value)
    into.append(value)
    return None


def _unflatten(shape: int | None, taken: Any) -> Any:
    return next(taken) if shape is None else [next(taken) for _ in range(shape)]
