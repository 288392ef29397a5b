"""Automatic mixed precision: ``autocast``, ``GradScaler``, ``custom_fwd`` and ``custom_bwd`` for ``cuda``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import find
from .._device_type import DeviceType
from .._patching import Patch, Surface

surface = Surface("amp")

_UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"
_C_STATE = ("is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype")


@surface.wrap("torch.amp.grad_scaler:GradScaler.__init__", optional=True)
def scaler(ctx: Context, original: Any) -> Any:
    """`GradScaler("cuda")` is on, for the vendor's device; a pickled one says `cuda`."""
    make = construct(ctx, original)
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return make
    routed = DeviceType(ctx.vendor.device_type)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if self._device == ctx.device_type:
            self._device = routed
            _stand_down(ctx, self, "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")

    return __init__


def _stand_down(ctx: Context, self: Any, text: str) -> None:
    """Where no card is visible it is off, as torch has it for CUDA, whose warning it gives."""
    asked = self._enabled and ctx.active and ctx.vendor.indexed and not ctx.vendor.identity
    if asked and not ctx.module.is_initialized() and not ctx.module.is_available():
        warnings.warn(text, stacklevel=4)
        self._enabled = False


@surface.wrap("torch.amp.autocast_mode:autocast.__init__")
def construct(ctx: Context, original: Any) -> Any:
    """`torch.autocast("cuda")` is on, for the vendor's device."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if args and args[0].__class__ is str:
            original(self, ctx.device_kind(args[0]), *args[1:], **kwargs)
            if getattr(self, "device", None) == ctx.device_type:  # an autocast
                _stand_down(ctx, self, "User provided device_type of 'cuda', but CUDA is not available. Disabling")
            return
        for name in ("device_type", "device"):
            if name in kwargs:
                kwargs[name] = ctx.device_kind(kwargs[name])
        if args:
            args = (ctx.device_kind(args[0]), *args[1:])
        elif "device_type" not in kwargs and "device" not in kwargs and "device" in original.__code__.co_varnames[:2]:
            kwargs["device"] = ctx.device_kind("cuda")  # the default of GradScaler
        original(self, *args, **kwargs)

    return __init__


@surface.wrap("torch.amp.autocast_mode:autocast.__enter__")
def enter(ctx: Context, original: Any) -> Any:
    """A data type that the CPU's autocast does not know leaves it off (float16 before torch 2.3), as torch warns."""
    import torch

    if ctx.vendor.indexed or not _knows_bfloat16_only():
        return original

    def __enter__(self: Any) -> Any:
        if ctx.active and self.device == ctx.device_type and not self._enabled:
            self.fast_dtype = torch.get_autocast_cpu_dtype()  # torch refuses the other, also where it is switched off
        return original(self)

    return __enter__


def _knows_bfloat16_only() -> bool:
    import torch

    if hasattr(torch, "get_autocast_dtype"):
        return False
    found = torch.get_autocast_cpu_dtype()
    try:
        torch.set_autocast_cpu_dtype(torch.float16)
    except RuntimeError:
        return True
    torch.set_autocast_cpu_dtype(found)
    return False


@surface.wrap("torch.cuda.amp.grad_scaler:GradScaler.__init__")
def older_scaler(ctx: Context, original: Any) -> Any:
    """The scaler is off on the CPU where torch has no kernel for it there (before torch 2.3)."""
    import torch

    if ctx.vendor.indexed or torch._C._dispatch_has_kernel_for_dispatch_key(_UNSCALE, "CPU"):
        return original

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if ctx.active and self._enabled:
            ctx.log.info("GradScaler: torch %s cannot scale gradients on the CPU, it is off.", torch.__version__)
            self._enabled = False

    return __init__


def _state(ctx: Context, original: Any) -> Any:
    """Without a device type these ask about, and set, the state of CUDA; that is the vendor's."""
    import torch

    if not hasattr(torch, "get_autocast_dtype"):
        return _older_state(ctx, original, original.__name__)
    setter = original.__name__.startswith("set_")

    def state(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) > setter and args[0].__class__ is str:
            kind = args[0]
            return original(ctx.device_type if kind in ctx.aliases else ctx.device_kind(kind), *args[1:])
        if not ctx.active:
            return original(*args, **kwargs)
        if "device_type" in kwargs:
            kwargs["device_type"] = ctx.device_kind(kwargs["device_type"])
        elif len(args) > setter:
            args = (ctx.device_kind(args[0]), *args[1:])
        else:
            args = (ctx.device_type, *args)
        return original(*args, **kwargs)

    return state


def _older_state(ctx: Context, original: Any, name: str) -> Any:
    """Before torch 2.4 these know CUDA only; `torch.autocast` asks the device module's function of that name."""
    theirs = getattr(ctx.module, name, None)

    def state(*args: Any, **kwargs: Any) -> Any:
        return (theirs if ctx.active and theirs is not None else original)(*args, **kwargs)

    return state


for _name in _C_STATE:
    surface.wrap(f"torch:{_name}", also=(f"torch._C:{_name}",), optional=True)(_state)


@surface.wrap("torch:get_autocast_gpu_dtype")
def get_autocast_gpu_dtype(ctx: Context, original: Any) -> Any:
    """The autocast data type of the vendor's device."""
    import torch

    if not hasattr(torch, "get_autocast_dtype"):
        return _older_state(ctx, original, "get_autocast_dtype")

    def get_autocast_gpu_dtype() -> Any:
        return torch.get_autocast_dtype(ctx.device_type) if ctx.active else original()

    return get_autocast_gpu_dtype


@surface.wrap("torch:set_autocast_gpu_dtype")
def set_autocast_gpu_dtype(ctx: Context, original: Any) -> Any:
    """Sets the autocast data type of the vendor's device."""
    import torch

    if not hasattr(torch, "set_autocast_dtype"):
        return _older_state(ctx, original, "set_autocast_dtype")

    def set_autocast_gpu_dtype(dtype: Any) -> None:
        if ctx.active:
            torch.set_autocast_dtype(ctx.device_type, dtype)
        else:
            original(dtype)

    return set_autocast_gpu_dtype


@surface.wrap("torch.amp.autocast_mode:is_autocast_available", also=("torch.amp:is_autocast_available",), optional=True)
def is_autocast_available(ctx: Context, original: Any) -> Any:
    """Asked for `cuda`, answers for the vendor's device."""

    def is_autocast_available(device_type: str) -> bool:
        return bool(original(ctx.device_kind(device_type)))

    return is_autocast_available


@surface.wrap("torch.amp.autocast_mode:custom_fwd", also=("torch.amp:custom_fwd",), optional=True)
@surface.wrap("torch.amp.autocast_mode:custom_bwd", also=("torch.amp:custom_bwd",), optional=True)
def custom(ctx: Context, original: Any) -> Any:
    """`@custom_fwd(device_type="cuda")` follows the autocast state of the vendor's device."""

    def decorate(*args: Any, **kwargs: Any) -> Any:
        if "device_type" in kwargs:
            kwargs["device_type"] = ctx.device_kind(kwargs["device_type"])
        return original(*args, **kwargs)

    return decorate


@surface.discover
def supported(ctx: Context) -> Iterator[Patch]:
    """Making an `autocast`, as a decorator does at import, asks a plugin for its data types; that starts no device."""
    theirs = find(ctx, "get_amp_supported_dtype")
    if theirs is None or ctx.vendor.package is None:
        return

    def build(ctx: Context, original: Any) -> Any:
        import torch

        known = [getattr(torch, name) for name in ctx.vendor.amp_dtypes]

        def get_amp_supported_dtype() -> list[Any]:
            return list(known) if ctx.active and not ctx.module.is_initialized() else list(original())

        return get_amp_supported_dtype

    why, shown = (supported.__doc__ or "").strip(), f"{ctx.module.__name__}:{theirs.__name__}"
    yield Patch(f"{theirs.__module__}:{theirs.__name__}", build, why, also=(shown,))


@surface.discover
def own_scaler(ctx: Context) -> Iterator[Patch]:
    """The plugin's own scaler, which libraries take where it is there, steps torch's fused optimizers."""
    scaler = find(ctx, "amp.GradScaler")
    if ctx.vendor.package is None or not isinstance(scaler, type) or scaler.__module__.partition(".")[0] == "torch":
        return

    def build(_ctx: Context, original: Any) -> Any:
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            # Plugins hand the scaler to the optimizer's `step`, as torch did long ago; today's fused optimizers do not
            # take it.  Told that the optimizer leaves scaling to it, the scaler does all that is to be done.
            alone = getattr(optimizer, "_step_supports_amp_scaling", False)
            if not alone or "grad_scaler" in inspect.signature(optimizer.step).parameters:
                return original(self, optimizer, *args, **kwargs)
            optimizer._step_supports_amp_scaling = False
            try:
                return original(self, optimizer, *args, **kwargs)
            finally:
                optimizer._step_supports_amp_scaling = True

        return step

    yield Patch(f"{scaler.__module__}:{scaler.__qualname__}.step", build, (own_scaler.__doc__ or "").strip())
