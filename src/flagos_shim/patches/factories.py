"""Functions that make tensors and take a device: found in torch at run time, not from a hand-kept list."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._patching import Patch, Surface
from .._targets import resolve

surface = Surface("factories")
surface.forget(
    "torch.utils._device:_device_constructors.cache_clear",
    "torch.overrides:get_ignored_functions.cache_clear",
    "torch.overrides:get_overridable_functions.cache_clear",
    "torch.overrides:_get_overridable_functions.cache_clear",
    "torch.overrides:get_testing_overrides.cache_clear",
)

# Where torch keeps them: the public module, and the C module or class in which C++ looks the function up by name when
# it hands it to __torch_function__; both must give the same object.
_PLACES = (
    ("torch", "torch._C:_VariableFunctionsClass", ""),
    ("torch.fft", "torch._C._fft:", "fft_"),
    ("torch._C._nested", "", ""),
    ("torch._C._nn", "", ""),
    ("torch.nested", "", ""),
)
_WHY = "Makes a tensor on the device it is given."


def _takes_device(name: str, function: Any) -> bool:
    if isinstance(function, types.FunctionType):
        code = function.__code__
        return "device" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    doc = function.__doc__ or ""
    first_line = doc.strip().partition("\n")[0]
    if "device=" in first_line or "device:" in first_line:
        return True
    # Looking schemas up takes most of the time of finding the factories.  The documentation of a function that takes a
    # device says so somewhere, also where it is that of another overload; a test compares this with all schemas.
    if doc and "device" not in doc:
        return False
    import torch

    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    return any(argument.name == "device" for schema in schemas for argument in schema.arguments)


@surface.discover
def factories(ctx: Context) -> Iterator[Patch]:
    """Every function with a `device` argument in torch's public name spaces and in the C modules behind them."""
    import importlib

    for module_name, behind, prefix in _PLACES:
        module = importlib.import_module(module_name) if "_C" not in module_name else _c_module(module_name)
        for name, function in list(vars(module).items()):
            if not isinstance(function, (types.BuiltinFunctionType, types.FunctionType)) or name.startswith("__"):
                continue
            if behind and isinstance(function, types.FunctionType):
                # A function around torch's own, that somebody put there: what it takes is what torch's takes.
                function = _builtin(behind, prefix + name) or function
            if isinstance(function, types.FunctionType) and function.__module__ != module_name:
                continue
            if module_name == "torch" and isinstance(function, types.FunctionType):
                continue  # those of torch/__init__.py (set_default_device, compile ...) read devices by torch.device
            if _takes_device(prefix + name, function):
                also = (f"{behind}{'' if behind.endswith(':') else '.'}{prefix}{name}",) if behind else ()
                yield Patch(f"{module_name}:{name}", translate_device, _WHY, also=also)


def _builtin(behind: str, name: str) -> Any:
    try:
        found = resolve(f"{behind}{'' if behind.endswith(':') else '.'}{name}")[3]
    except (ImportError, AttributeError):
        return None
    return found if isinstance(found, types.BuiltinFunctionType) else None


def _c_module(name: str) -> Any:
    import torch

    return getattr(torch._C, name.rpartition(".")[2])


def translate_device(ctx: Context, original: Any) -> Any:
    """A device given by keyword, or at the position where a Python function takes it, becomes the vendor's."""
    import torch

    devices, translate, device_class = ctx.devices, ctx.translate, torch.device
    overridden = torch._C._has_torch_function
    indexed = ctx.vendor.indexed

    if isinstance(original, types.FunctionType):
        parameters = list(inspect.signature(original).parameters.values())
        named = (i for i, p in enumerate(parameters) if p.name == "device" and p.kind is p.POSITIONAL_OR_KEYWORD)
        at = next(named, None)
        if at is not None:
            position = at

            def positional(*args: Any, **kwargs: Any) -> Any:
                if len(args) > position:
                    args = (*args[:position], translate(args[position]), *args[position + 1 :])
                elif "device" in kwargs:
                    kwargs["device"] = translate(kwargs["device"])
                return original(*args, **kwargs)

            return positional

    def factory(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return original(*args)
        if "device" in kwargs:
            device = kwargs["device"]
            if device.__class__ is str:
                if not overridden(args):  # __torch_function__ sees what the program wrote, and calls us again
                    kwargs["device"] = devices[device]
            elif device.__class__ is not device_class and device is not None:
                kwargs["device"] = translate(device)
        try:
            return original(*args, **kwargs)
        except RuntimeError:
            # On the CPU nothing is pinned, which no torch without an accelerator takes.
            if indexed or not kwargs.get("pin_memory"):
                raise
        return original(*args, **{**kwargs, "pin_memory": False})

    return factory
