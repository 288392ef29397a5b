"""``torch.library``: operators and kernels registered for ``cuda`` are registered for the vendor's device."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from .._context import Context
from .._device_type import is_internal
from .._patching import Surface

surface = Surface("library")

_FUNCTIONS = "torch.library"
_DEFINITION = "torch._library.custom_ops:CustomOpDef"


def dispatch_key(ctx: Context, key: Any) -> Any:
    """The vendor's dispatch key for one of CUDA's ("CUDA", "AutogradCUDA", "SparseCUDA"); all else as it is.

    On the CPU a kernel written for CUDA serves operators that have none for the CPU itself, whichever comes first.
    """
    import torch

    if ctx.device_type is None or not isinstance(key, str) or not key.endswith("CUDA"):
        return key
    kind = key[: -len("CUDA")]
    if not kind and not ctx.vendor.indexed:
        return "CompositeExplicitAutograd"
    find = getattr(torch._C, "_dispatch_key_for_device", None)  # not in torch 2.1
    ours = kind + ("PrivateUse1" if find is None else find(ctx.device_type))
    return ours if ours in torch._C.DispatchKey.__members__ else key


def _kind(ctx: Context, value: Any) -> Any:
    """A device type, a dispatch key, or several of them, for the vendor's device."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(dict.fromkeys(_kind(ctx, one) for one in value))
    return dispatch_key(ctx, ctx.device_kind(value))


def _at(position: int, name: str, translate: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments with the one of that position or name translated."""
    if name in kwargs:
        kwargs[name] = translate(kwargs[name])
    elif len(args) > position:
        args = (*args[:position], translate(args[position]), *args[position + 1 :])
    return args


def _library_method(position: int) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        """Kernels for the dispatch key `CUDA` run on the vendor's device; torch's own for CUDA are left to CUDA."""

        def method(*args: Any, **kwargs: Any) -> Any:
            if not is_internal(sys._getframe(1)):
                args = _at(position, "dispatch_key", lambda key: dispatch_key(ctx, key), args, kwargs)
            return original(*args, **kwargs)

        return method

    return build


surface.wrap(f"{_FUNCTIONS}:Library.__init__")(_library_method(3))
surface.wrap(f"{_FUNCTIONS}:Library.impl")(_library_method(3))
surface.wrap(f"{_FUNCTIONS}:Library.fallback", optional=True)(_library_method(2))


@surface.wrap(f"{_FUNCTIONS}:impl")
def impl(ctx: Context, original: Any) -> Any:
    """`@torch.library.impl("ns::op", "cuda")` and `impl(lib, "op", "CUDA")` make kernels of the vendor's device."""
    import torch

    def impl(*args: Any, **kwargs: Any) -> Any:
        if ctx.active and not is_internal(sys._getframe(1)):
            by_library = isinstance(args[0], torch.library.Library) if args else False
            args = _at(2, "dispatch_key", lambda key: dispatch_key(ctx, key), args, kwargs) if by_library else args
            args = args if by_library else _types(ctx, args, kwargs)
        return original(*args, **kwargs)

    return impl


def _types(ctx: Context, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Where an operator is given by name, device types may be dispatch keys as well."""

    def translate(kinds: Any) -> Any:
        single = (kinds,) if isinstance(kinds, str) else kinds
        if ctx.vendor.indexed or kinds is None:
            return _kind(ctx, kinds)
        # As for `dispatch_key`: what names CUDA only is for all devices that have no kernel of their own.
        return [dispatch_key(ctx, "CUDA" if one in ctx.aliases else one) for one in single]

    return _at(1, "types" if "types" in kwargs else "device_types", translate, args, kwargs)


@surface.wrap(f"{_FUNCTIONS}:register_kernel", optional=True)
def register_kernel(ctx: Context, original: Any) -> Any:
    """`torch.library.register_kernel(op, "cuda")` registers a kernel of the vendor's device."""
    import torch

    def register_kernel(*args: Any, **kwargs: Any) -> Any:
        op = args[0] if args else None
        if isinstance(op, (str, torch._ops.OpOverload)) and not _defined_here(op):
            args = _types(ctx, args, kwargs)
        return original(*args, **kwargs)

    return register_kernel


def _defined_here(op: Any) -> bool:
    """True where ``@custom_op`` made the operator: its definition then translates by itself."""
    from torch._library.custom_ops import OPDEFS

    return (op if isinstance(op, str) else op._name) in OPDEFS


@surface.wrap(f"{_DEFINITION}.register_kernel", optional=True)
def definition_kernel(ctx: Context, original: Any) -> Any:
    """`@custom_op(..., device_types="cuda")` and `op.register_kernel("cuda")` make kernels of the vendor's device."""

    served: weakref.WeakSet[Any] = weakref.WeakSet()  # operators whose kernel for the CPU is the one for CUDA

    def register_kernel(self: Any, device_types: Any, fn: Any = None, /) -> Any:
        if ctx.vendor.indexed or device_types is None:
            return original(self, _kind(ctx, device_types), fn)
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        wanted = [kind for kind in kinds if kind not in ctx.aliases]
        if "cpu" in wanted:
            served.discard(self)
        elif len(wanted) < len(kinds) and ("cpu" not in self._backend_fns or self in served):
            wanted.append("cpu")  # the CPU's own kernel goes first, where there is one
            served.add(self)
        return original(self, wanted, fn)

    return register_kernel


def _device_type(position: int) -> Any:
    def build(ctx: Context, original: Any) -> Any:
        """The device type `cuda` is the vendor's."""

        def function(*args: Any, **kwargs: Any) -> Any:
            return original(*_at(position, "device_type", ctx.device_kind, args, kwargs), **kwargs)

        return function

    return build


surface.wrap(f"{_FUNCTIONS}:register_autocast", optional=True)(_device_type(1))
surface.wrap(f"{_DEFINITION}.register_autocast", optional=True)(_device_type(1))
surface.wrap(f"{_DEFINITION}.set_kernel_enabled", optional=True)(_device_type(1))


@surface.wrap(f"{_FUNCTIONS}:get_kernel", optional=True)
def get_kernel(ctx: Context, original: Any) -> Any:
    """`torch.library.get_kernel("aten::sin", "CUDA")` is the vendor's kernel."""
    import torch

    def translate(key: Any) -> Any:
        if isinstance(key, str):
            return dispatch_key(ctx, key)
        name = dispatch_key(ctx, key.name) if isinstance(key, torch._C.DispatchKey) else None
        return key if name is None else torch._C.DispatchKey.__members__[name]

    def get_kernel(*args: Any, **kwargs: Any) -> Any:
        if is_internal(sys._getframe(1)):  # torch looks up CUDA's own kernels while it is still being imported
            return original(*args, **kwargs)
        return original(*_at(1, "dispatch_key", translate, args, kwargs), **kwargs)

    return get_kernel
