"""``torch.cuda``: one closed group, applied together or not at all.

The module objects stay; every name in them is decided by ``_coverage.decide``.  This file declares the core: which
devices there are, which is current, when the device comes up.  The other ``cuda_*`` files declare the rest.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from .. import _environment
from .._context import Context
from .._coverage import decide
from .._cuda_names import find, index_of, invalid_ordinal, stand_in
from .._patching import MISSING, Patch, Surface
from . import (  # noqa: F401  (importing them makes their declarations)
    cuda_comm,
    cuda_device,
    cuda_graphs,
    cuda_memory,
    cuda_nvtx,
    cuda_random,
    cuda_streams,
    cuda_switches,
    cuda_telemetry,
    cuda_types,
)

# Code that asks for CUDA itself: before it makes code for its compiler, or looks whether cuDNN fits the cards.
_MEANS_CUDA = ("torch._inductor.", "torch.backends.cudnn")
# And what asks whether host memory is to be pinned, before torch 2.6; on the CPU back end it is not.
_PINS = "torch.utils.data."
# Torch's own question which accelerator there is, in its order: with this answer it comes to the vendor's name.
_CHOOSES_DEVICE = "_get_available_device_type"

# Where a queued call that has failed is remembered until the device is up.
_FAILED = "deferred call that failed"

surface = Surface("cuda")
surface.discover(cuda_types.tensor_types)
surface.discover(cuda_comm.parallel)
surface.discover(cuda_streams.vendor_classes)
surface.discover(cuda_graphs.vendor_classes)


@surface.discover
def start(ctx: Context) -> Iterator[Patch]:
    """The plugin comes up with the cards that CUDA_VISIBLE_DEVICES names at that moment."""
    theirs = find(ctx, "_lazy_init")
    if theirs is None:
        return

    def build(ctx: Context, original: Any) -> Any:
        started = False

        def _lazy_init() -> Any:
            nonlocal started
            if started:
                return original()
            refresh(ctx)
            result = original()
            started = True
            if _FAILED in ctx.remembered:
                _raise_deferred(ctx)
            return result

        return _lazy_init

    places = tuple(dict.fromkeys((f"{theirs.__module__}:{theirs.__name__}", f"{ctx.module.__name__}:_lazy_init")))
    yield Patch(places[0], build, (start.__doc__ or "").strip(), also=places[1:])


@surface.discover
def names(ctx: Context) -> Iterator[Patch]:
    """Every public name of torch.cuda and its submodules, found on the installed torch."""
    ctx.names = tuple(decide(ctx))
    for decision in ctx.names:
        if decision.patch is not None:
            yield decision.patch


@surface.replace("torch.version:cuda")
def version(_ctx: Context, _original: Any) -> None:
    """None, as on every device that is not CUDA's: libraries that ask for it go on to CUDA's own compiler."""


@surface.discover
def forgotten(ctx: Context) -> Iterator[Patch]:
    """A name that the plugin's own code uses without defining it."""
    for target, name in ctx.vendor.lacking.items():

        def build(ctx: Context, original: Any, name: str = name) -> Any:
            import torch

            return getattr(torch.cuda, name) if original is MISSING else original

        yield Patch(target, build, (forgotten.__doc__ or "").strip(), "provide")


def refresh(ctx: Context) -> None:
    """Bring the vendor's list of visible cards and its allocator's options up to date, until a device is used."""
    if ctx.active and not ctx.module.is_initialized():
        _environment.carry_allocator_options(ctx.vendor, ctx.environment)
        _environment.carry_visible_devices(ctx.vendor, ctx.environment)


@stand_in("torch.cuda:device_count")
def device_count(ctx: Context, original: Any) -> Any:
    """the cards that CUDA_VISIBLE_DEVICES leaves"""
    count = ctx.module.device_count

    def device_count() -> int:
        if not ctx.active:
            return int(original())
        refresh(ctx)
        # A runtime that stands in for the vendor's may know nothing of the variable that chooses cards.
        most = ctx.environment.cards
        return int(count()) if most is None else min(int(count()), most)

    return device_count


@stand_in("torch.cuda:is_available")
def is_available(ctx: Context, original: Any) -> Any:
    """true where there is a device; asking starts nothing"""
    available, initialized = ctx.module.is_available, ctx.module.is_initialized
    elsewhere = _MEANS_CUDA if ctx.vendor.indexed else (*_MEANS_CUDA, _PINS)

    def is_available() -> bool:
        if not ctx.active:
            return bool(original())
        frame = sys._getframe(1)
        name = frame.f_globals.get("__name__", "")
        if name.startswith(elsewhere) or (name == "torch._utils" and frame.f_code.co_name == _CHOOSES_DEVICE):
            return False
        if initialized():
            return True
        refresh(ctx)
        return ctx.environment.cards != 0 and bool(available())

    return is_available


@stand_in("torch.cuda:is_initialized")
def is_initialized(ctx: Context, original: Any) -> Any:
    """whether the plugin has started the device"""
    initialized = ctx.module.is_initialized

    def is_initialized() -> bool:
        return bool(initialized() if ctx.active else original())

    return is_initialized


@stand_in("torch.cuda:_is_in_bad_fork")
def is_in_bad_fork(ctx: Context, original: Any) -> Any:
    """whether this is a fork of a process that had started the device"""
    bad = find(ctx, "_is_in_bad_fork") or (lambda: False)

    def _is_in_bad_fork() -> bool:
        return bool(bad() if ctx.active else original())

    return _is_in_bad_fork


@stand_in("torch.cuda:_lazy_init")
def lazy_init(ctx: Context, original: Any) -> Any:
    """starts the device"""
    begin = find(ctx, "_lazy_init") or ctx.module.init
    missing = ctx.missing is not None

    def _lazy_init() -> None:
        if not ctx.active:
            original()
            return
        # Python code calls it by name.  Where none does, torch's C++ is about to use a device that is not there.
        if missing and "_lazy_init" not in sys._getframe(1).f_code.co_names:
            raise invalid_ordinal()
        refresh(ctx)
        begin()

    return _lazy_init


@stand_in("torch.cuda:init")
def init(ctx: Context, original: Any) -> Any:
    """starts the device"""
    begin = find(ctx, "init") or find(ctx, "_lazy_init")

    def init() -> None:
        if not ctx.active:
            original()
            return
        begin()
        if _FAILED in ctx.remembered:
            _raise_deferred(ctx)

    return init


@stand_in("torch.cuda:_lazy_call")
def lazy_call(ctx: Context, original: Any) -> Any:
    """runs a function now, or when the device starts"""
    later = find(ctx, "_lazy_call") or _at_once

    def _lazy_call(callable: Any, **kwargs: Any) -> None:
        if not ctx.active:
            original(callable, **kwargs)
        elif ctx.module.is_initialized():
            callable()
        else:
            later(_remembering(ctx, callable))

    return _lazy_call


def _at_once(callback: Any) -> None:
    """For a device that needs no start: what fails is remembered, and raised when the program starts it."""
    with contextlib.suppress(Exception):
        callback()


def _remembering(ctx: Context, callback: Any) -> Any:
    """A call to be made when the device starts; some plugins pass over its error, which is then raised afterwards."""
    where = "".join(traceback.format_stack(sys._getframe(2)))

    def run() -> None:
        try:
            callback()
        except Exception as error:
            ctx.remembered[_FAILED] = (error, where)
            raise

    return run


def _raise_deferred(ctx: Context) -> None:
    """torch's own error for a call that failed when the device started."""
    import torch

    error, where = ctx.remembered.pop(_FAILED)
    raise torch.cuda.DeferredCudaCallError(
        f"CUDA call failed lazily at initialization with error: {error}\n\n"
        f"CUDA call was originally invoked at:\n\n{where}"
    ) from error


@stand_in("torch.cuda._utils:_get_device_index")
def get_device_index(ctx: Context, original: Any) -> Any:
    """the ordinal in a device of any spelling"""

    def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> Any:
        if not ctx.active or (allow_cpu and str(getattr(device, "type", device)) == "cpu"):
            return original(device, optional, allow_cpu)
        import torch

        if device.__class__ is torch.cuda.device:
            return device.idx
        index = ctx.ordinal(device)
        if index is not None:
            return index
        if not optional and (ctx.vendor.indexed or device is None):
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        return ctx.module.current_device()

    return _get_device_index


@stand_in("torch.cuda:set_device")
def set_device(ctx: Context, original: Any) -> Any:
    """an ordinal, a string or a device; one without index leaves the current device as it is"""

    reached: set[int] = set()  # asking for the number of devices takes longer than all the rest

    def set_device(device: Any) -> None:
        if not ctx.active:
            original(device)
            return
        if device.__class__ is int and device in reached:
            ctx.module.set_device(device)
            return
        index = index_of(ctx, device)
        if index is None and (ctx.vendor.indexed or device is None):
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        if index is not None and index >= 0:
            ctx.module.set_device(index)
            reached.add(index)

    return set_device


@stand_in("torch.cuda:_exchange_device", "torch.cuda:_maybe_exchange_device")
def exchange_device(ctx: Context, original: Any) -> Any:
    """sets the current device and returns the one before; `torch.cuda.device` stands on it"""

    def _exchange_device(device: int) -> int:
        if not ctx.active:
            return int(original(device))
        if device < 0:
            return -1
        before = int(ctx.module.current_device())
        if device != before:
            ctx.module.set_device(index_of(ctx, device))
        return before

    return _exchange_device
