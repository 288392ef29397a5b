"""Operators that are not just the CPU's operator of the same name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import torch

from .host_memory import adopt, device_of, host_view, refuse_too_large, to_device, to_host
from .kernels import two_devices
from .precision import HALF, in_full_precision

_empty = torch.ops.aten.empty_strided.default._op


def _own_copy() -> Callable[..., torch.Tensor] | None:
    """Return torch_npu's own kernel for copies, which torch can hand out since 2.9, before it is replaced."""
    if not hasattr(torch.library, "get_kernel"):
        return None
    kernel = torch.library.get_kernel("aten::copy_", "PrivateUse1")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)
    return functools.partial(kernel.call_boxed, keys)


_copy_across = _own_copy()


def copy_(dst: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between any two of NPU and CPU tensors; the copy is complete on return.

    Plain copies between CPU and NPU are torch_npu's own, and so fail where the runtime's copy does.
    """
    if dst.is_cpu != src.is_cpu and _copy_across is not None and _plain(dst, src):
        return _copy_across(dst, src, non_blocking)
    host = dst if dst.is_cpu else host_view(dst)
    host.copy_(src if src.is_cpu else host_view(src))
    return dst


def _plain(dst: torch.Tensor, src: torch.Tensor) -> bool:
    return (
        dst.dtype == src.dtype
        and dst.numel() > 0
        and dst.shape == src.shape
        and dst.is_contiguous()
        and src.is_contiguous()
        and not (dst.is_conj() or src.is_conj() or dst.is_neg() or src.is_neg())
    )


def _strides(x: torch.Tensor, memory_format: torch.memory_format | None) -> Any:
    """Return the strides that a copy of ``x`` has."""
    wanted = memory_format or torch.preserve_format
    if x.is_contiguous() and wanted in (torch.preserve_format, torch.contiguous_format):
        return x.stride()
    shape = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device="meta")
    return torch.empty_like(shape, memory_format=wanted).stride()


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
    out = empty_like(x, dtype=dtype, device=device, pin_memory=pin_memory, memory_format=memory_format)
    return copy_(out, x, non_blocking)


def clone(x: torch.Tensor, *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    """Return a copy of ``x``."""
    return copy_(empty_like(x, memory_format=memory_format), x)


def contiguous(x: torch.Tensor, *, memory_format: torch.memory_format = torch.contiguous_format) -> torch.Tensor:
    """Return ``x`` itself where it is contiguous, else a contiguous copy."""
    if x.layout is not torch.strided or x.is_contiguous(memory_format=memory_format):
        return x
    return x.clone(memory_format=memory_format)


def native_dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``x`` with dropout, and the mask of what was kept; the random numbers are the NPU generator's."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = torch.rand(x.shape, device=x.device) >= p
    return x * mask / (1 - p) if p < 1 else torch.zeros_like(x), mask


def pack_padded_sequence(
    x: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the packed data on the NPU, and the sizes of its batches, which PackedSequence wants on the CPU."""
    data, sizes = torch.ops.aten._pack_padded_sequence.default(host_view(x), lengths.cpu(), batch_first)
    return to_device(data, x.device), sizes


def empty_like(
    x: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """Return a tensor like ``x``; torch_npu's own warns of formats that no tensor has here."""
    options: dict[str, Any] = {"pin_memory": True} if pin_memory else {}
    strides = _strides(x, memory_format)
    return cast(torch.Tensor, _empty(x.size(), strides, dtype=dtype or x.dtype, device=device or x.device, **options))


class _OnHost(torch.autograd.Function):  # type: ignore[misc]
    """An operator and its derivative on host views; the tensors are kept, and checked for changes, by autograd."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], *flat: Any) -> Any:
        tensors = [t for t in flat if isinstance(t, torch.Tensor)]
        device = device_of(tensors)
        assert device is not None
        for t in tensors:  # the sizes of a packed sequence's batches are on the CPU
            if t.device != device and t.dim() and t.is_floating_point():
                raise two_devices(t.device, device)
        ctx.save_for_backward(*tensors)
        ctx.wanted = ctx.needs_input_grad[1:]
        leaves = [  # .data: all host views are windows of one array, and would share one count of changes
            to_host(t).data.requires_grad_(wanted) if isinstance(t, torch.Tensor) else t
            for t, wanted in zip(flat, ctx.wanted)
        ]
        try:
            with torch.enable_grad():
                outputs = run(*leaves)
        except RuntimeError as error:
            refuse_too_large(error, device)
            raise
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        ctx.leaves, ctx.outputs = leaves, outputs
        results = tuple(adopt(out.detach(), device) for out in outputs)
        ctx.mark_non_differentiable(*(r for r, out in zip(results, outputs) if not out.requires_grad))
        return results if len(results) > 1 else results[0]

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        _ = ctx.saved_tensors  # raises where one of them was changed since
        device = device_of(grads)
        inputs = [leaf for leaf, wanted in zip(ctx.leaves, ctx.wanted) if wanted]
        pairs = [(o, to_host(g)) for o, g in zip(ctx.outputs, grads) if g is not None and o.requires_grad]
        outputs, seeds = [o for o, _ in pairs], [g for _, g in pairs]
        found = iter(torch.autograd.grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True))
        assert device is not None
        return (None, *(adopt(next(found), device) if wanted else None for wanted in ctx.wanted))


# A tensor of any other class stands for one, as under a compiler: it has no memory to compute on.
_WITH_MEMORY = (torch.Tensor, torch.nn.Parameter)


def _in_parts(op: torch._ops.OpOverload[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Take ``op`` apart into the operators that a compiler knows, as torch does for a device without its own."""
    from torch._decomp import decomposition_table

    apart = op.decompose(*args, **kwargs)
    return decomposition_table[op](*args, **kwargs) if apart is NotImplemented else apart


def differentiable(op: torch._ops.OpOverload[..., Any]) -> Callable[..., Any]:
    """Return a kernel for an operator whose derivative torch_npu computes in its own way: ``op`` with the CPU's."""
    tensors = [i for i, argument in enumerate(op._schema.arguments) if str(argument.type) == "Tensor"]
    run = on_host(in_full_precision(op._op, HALF))

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if args[0].__class__ not in _WITH_MEMORY:
            return _in_parts(op, *args, **kwargs)
        # A number that the program gave in the place of a tensor comes as a number.
        given = (torch.tensor(v) if i in tensors and not isinstance(v, torch.Tensor) else v for i, v in enumerate(args))
        return run(*given, **kwargs)

    return kernel


def on_host(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``compute``, a differentiable function of CPU tensors, as one of NPU tensors."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        flat: list[Any] = []
        shape = [_flatten(value, flat) for value in args]
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
