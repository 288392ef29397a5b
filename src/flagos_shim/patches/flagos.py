"""The names of FlagOS itself: ``torch.flagos``, ``torch.flagos_info()``, ``Tensor.flagos()``, ``Module.flagos()``."""

from __future__ import annotations

import types
from typing import Any

from .._context import Context
from .._cuda_names import find
from .._patching import Surface

surface = Surface("flagos")


def _check_backend(ctx: Context, backend: str | None) -> None:
    if backend is not None and str(backend).lower() not in (*ctx.vendor.names, "flagos"):
        raise RuntimeError(
            f"mixed backend operation not allowed: this process runs on {ctx.vendor.name!r}, {backend!r} was asked "
            "for. Use .to('flagos') for the device in use, or start the process with "
            f"FLAGOS_DEVICE_BACKEND={backend}."
        )


@surface.provide("torch:flagos")
def module(ctx: Context, _original: Any) -> Any:
    """The device module under the name of FlagOS: what `torch.cuda` has, and `get_amp_supported_dtype`."""
    import torch

    made = types.ModuleType("torch.flagos", "The device module under the name of FlagOS; its names are torch.cuda's.")
    shown = ctx.shown_module

    def ask(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.flagos' has no attribute {name!r}")
        return getattr(shown, name)

    # Asked each time: some names, like `default_generators`, are bound anew when the device starts.
    made.__dict__.update(
        __path__=list(getattr(shown, "__path__", ())),
        __getattr__=ask,
        __dir__=lambda: sorted({*(n for n in dir(shown) if not n.startswith("__")), "get_amp_supported_dtype"}),
    )
    theirs = find(ctx, "get_amp_supported_dtype")

    def get_amp_supported_dtype() -> list[torch.dtype]:
        """The data types that autocast may compute in on the device in use."""
        return [getattr(torch, name) for name in ctx.vendor.amp_dtypes] if theirs is None else list(theirs())

    made.__dict__["get_amp_supported_dtype"] = get_amp_supported_dtype
    return made


@surface.enrol("sys:modules")
def importable(_ctx: Context, _modules: Any) -> Any:
    """`import torch.flagos` works."""
    import torch

    return "torch.flagos", vars(torch)["flagos"]


@surface.provide("torch:flagos_info")
def info(ctx: Context, _original: Any) -> Any:
    """What this process runs on, as a dictionary."""
    from .._report import flagos_info

    return flagos_info


@surface.provide("torch:Tensor.flagos")
def tensor(ctx: Context, _original: Any) -> Any:
    """`x.flagos()`: a copy on the device in use."""
    import torch

    def flagos(
        self: Any,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = torch.preserve_format,
        *,
        backend: str | None = None,
    ) -> Any:
        """Return a copy of this tensor on the device of the active back end.

        Args:
            device: an ordinal or a device; None means the current one.
            non_blocking: as in ``Tensor.cuda``.
            memory_format: as in ``Tensor.cuda``.
            backend: the back end expected; another one than the active one is refused.

        Raises:
            RuntimeError: ``backend`` is not the active one.
        """
        _check_backend(ctx, backend)
        return self.to(ctx.accelerator(device), non_blocking=non_blocking, memory_format=memory_format)

    return flagos


@surface.provide("torch.nn:Module.flagos")
def module_method(ctx: Context, _original: Any) -> Any:
    """`model.flagos()`: all parameters and buffers on the device in use."""

    def flagos(self: Any, device: Any = None, *, backend: str | None = None) -> Any:
        """Move all parameters and buffers to the device of the active back end, and return the module.

        Args:
            device: an ordinal or a device; None means the current one.
            backend: the back end expected; another one than the active one is refused.

        Raises:
            RuntimeError: ``backend`` is not the active one.
        """
        _check_backend(ctx, backend)
        return self._apply(lambda tensor: tensor.to(ctx.accelerator(device)))

    return flagos
