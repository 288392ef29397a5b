"""One host kernel for any aten operator: the CPU kernel of the same operator, run on the same memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import generators
from .host_memory import DEVICES, adopt, host_view, refuse_too_large, to_device
from .precision import SLOW_IN_FLOAT16, in_full_precision

Kernel = Callable[..., Any]

# These take CPU tensors beside NPU ones (indices, lengths) on real devices too.
MIXED = frozenset(
    (
        *("index", "index_put_", "_index_put_impl_", "index_put", "_unsafe_index", "_unsafe_index_put"),
        *("_ctc_loss", "ctc_loss", "_ctc_loss_backward", "_foreach_copy_", "_pack_padded_sequence_backward"),
    )
)
_CPU = torch.device("cpu")
_NOT_RESIZABLE = "resize storage that is not resizable"


def two_devices(one: torch.device, other: torch.device) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
    )


class _Call:
    """What the schema of one operator says about its arguments."""

    def __init__(self, op: torch._ops.OpOverload[..., Any], name: str) -> None:
        arguments = op._schema.arguments
        kinds = [str(argument.type) for argument in arguments]
        self.mixed = name in MIXED
        self.indexing = self.mixed and "index" in name
        self.tensors = [i for i, kind in enumerate(kinds) if kind in ("Tensor", "Optional[Tensor]")]
        self.lists = [i for i, kind in enumerate(kinds) if kind.startswith("List[") and "Tensor" in kind]
        self.generator = next((i for i, kind in enumerate(kinds) if "Generator" in kind), None)
        self.devices = [i for i, kind in enumerate(kinds) if "Device" in kind]
        self.written = [i for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]
        self.names = [argument.name for argument in arguments]
        self.has_out = any(argument.is_out for argument in arguments)
        returns = op._schema.returns
        self.returns = len(returns)
        self.returns_written = bool(self.written) and all(r.alias_info is not None for r in returns)

    def host(self, value: Any, index: int) -> tuple[Any, int]:
        """Return the host side of one tensor argument, and the index of its NPU (``index`` where it has none)."""
        if not isinstance(value, torch.Tensor):  # None, or a number in the place of a tensor
            return value, index
        if value.is_cpu:
            if value.dim() and not self.mixed:
                raise two_devices(_CPU, DEVICES[max(index, 0)])
            return value, index
        found = value.get_device()
        if found != index and index >= 0 and value.dim():
            raise two_devices(DEVICES[index], value.device)
        return host_view(value), found if index < 0 else index

    def host_list(self, values: Any, index: int) -> tuple[list[Any], int]:
        """Return the host sides of a list of tensors, as :meth:`host` does."""
        out = []
        for value in values:
            host, index = self.host(value, index)
            out.append(host)
        return out, index


def kernel(op: torch._ops.OpOverload[..., Any], name: str) -> Kernel:
    """Return a kernel for NPU tensors that computes ``op`` on the host; ``name`` is without the overload."""
    call = _Call(op, name)
    simple = call.returns == 1 and call.generator is None and not (call.lists or call.written or call.devices)
    compute = in_full_precision(op._op, (torch.float16,)) if name in SLOW_IN_FLOAT16 else op._op
    return _plain(compute, call) if simple else _general(compute, call)


def _plain(compute: Kernel, call: _Call) -> Kernel:
    """The usual case, tensors and numbers in and one result out, without what the others need."""
    tensors, names = call.tensors, call.names

    def run(*args: Any, **kwargs: Any) -> Any:
        values = list(args)
        count, index = len(values), -1
        for i in tensors:
            if i < count:
                value = values[i]
                if isinstance(value, torch.Tensor):
                    if value.is_cpu or (index >= 0 and value.get_device() != index):
                        values[i], index = call.host(value, index)
                    else:
                        values[i] = host_view(value)
                        index = value.get_device()
            elif names[i] in kwargs:
                kwargs[names[i]], index = call.host(kwargs[names[i]], index)
        try:
            result = compute(*values, **kwargs)
        except RuntimeError as error:
            refuse_too_large(error, DEVICES[index])
            raise
        if isinstance(result, torch.Tensor):
            return to_device(result, DEVICES[index])
        return adopt(result, DEVICES[index])

    return run


def _general(compute: Kernel, call: _Call) -> Kernel:
    """Any operator: lists of tensors, arguments that are written, devices, random numbers, several results."""
    names = call.names

    def run(*args: Any, **kwargs: Any) -> Any:
        values, count, index = list(args), len(args), -1
        if call.indexing and args[0].is_cpu:
            raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
        if call.generator is not None:
            given = values[call.generator] if call.generator < count else kwargs.get("generator")
            generators.check(given, args[0] if call.tensors[:1] == [0] and args else None)
        written = [args[i] if i < count else kwargs.get(names[i]) for i in call.written]
        for positions, convert in ((call.tensors, call.host), (call.lists, call.host_list)):
            for i in positions:
                if i < count:
                    if values[i] is not None:
                        values[i], index = convert(values[i], index)
                elif kwargs.get(names[i]) is not None:
                    kwargs[names[i]], index = convert(kwargs[names[i]], index)
        device = DEVICES[index] if index >= 0 else _named_device(call, args, kwargs)
        for i in call.devices:
            if i < count:
                values[i] = _CPU
            else:
                kwargs[names[i]] = _CPU
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        advance = None
        if call.generator is not None:
            at = call.generator
            drawn, advance = generators.host_generator(given, device)
            if at < count:
                values[at] = drawn
            else:
                kwargs["generator"] = drawn
        try:
            result = compute(*values, **kwargs)
        except RuntimeError as error:
            refuse_too_large(error, device)
            if not call.has_out or _NOT_RESIZABLE not in str(error):
                raise
            result = _with_room(compute, call, values, kwargs)
        if advance is not None:
            advance()
        if call.has_out:
            results = result if isinstance(result, (tuple, list)) else (result,)
            for out, value in zip(written, results):
                if isinstance(out, torch.Tensor) and not _same_memory(out, value):
                    _fill(out, value)
        if not call.returns:
            return None
        if call.returns_written:
            return written[0] if call.returns == 1 else tuple(written)
        return adopt(result, device)

    return run


def _named_device(call: _Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    """Return the NPU that the device argument names, else the current one."""
    for i in call.devices:
        device = args[i] if i < len(args) else kwargs.get(call.names[i])
        if device is not None and torch.device(device).index is not None:
            return torch.device(device)
    return DEVICES[torch.npu.current_device()]


def _with_room(compute: Kernel, call: _Call, values: list[Any], kwargs: dict[str, Any]) -> Any:
    """Compute into fresh tensors, because a host view of a result that has another shape cannot be resized."""
    for i in call.written:
        if i < len(values):
            values[i] = torch.empty(0, dtype=values[i].dtype)
        elif kwargs.get(call.names[i]) is not None:
            kwargs[call.names[i]] = torch.empty(0, dtype=kwargs[call.names[i]].dtype)
    return compute(*values, **kwargs)


def _same_memory(out: torch.Tensor, value: torch.Tensor) -> bool:
    return bool(out.data_ptr() == value.data_ptr() and out.shape == value.shape)


def _fill(out: torch.Tensor, value: torch.Tensor) -> None:
    if out.shape != value.shape:
        out.resize_(value.shape)
    if value.numel():
        host_view(out).copy_(value)
