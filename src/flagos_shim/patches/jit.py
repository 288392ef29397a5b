"""TorchScript: ``script``, ``trace``, ``save`` and ``load`` for programs that name ``cuda``."""

from __future__ import annotations

import functools
import io
import os
import sys
import zipfile
from typing import Any

from .._archive import Rename, rename_devices
from .._context import Context
from .._device_type import DeviceType
from .._devices import tag_pattern
from .._patching import Surface
from .._scripted import prepare
from .._scripted_casts import ScriptedCasts
from .._twins import Twins

surface = Surface("jit")


@surface.install("torch.jit._builtins:_get_builtin_table")
def builtin_table(_ctx: Context, _original: Any) -> Twins:
    """`torch.zeros` in a scripted function is the operator, also while a stand-in is in its place."""
    return Twins(lambda: sys.modules["torch.jit._builtins"]._builtin_table, key=id)


@surface.install("torch.nn.parameter:UninitializedTensorMixin._allowed_methods")
def lazy_parameters(_ctx: Context, original: Any) -> Twins:
    """Lazy modules may be moved before their first call."""
    return Twins(lambda: original)


@surface.wrap("torch._C:ScriptModule.setattr")
@surface.wrap("torch._C:ConcreteModuleTypeBuilder.add_constant")
def attribute(ctx: Context, original: Any) -> Any:
    """An attribute that holds `x.device.type` says `cuda` in a scripted module, and in its file."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def set_attribute(self: Any, name: str, value: Any) -> None:
        original(self, name, value.alias if isinstance(value, DeviceType) and ctx.active else value)

    return set_attribute


@surface.install("torch._C:_jit_pass_autocast", optional=True)
def autocast(ctx: Context, _original: Any) -> ScriptedCasts:
    """`with torch.autocast("cuda")` in scripted code is on, for the vendor's device."""
    return ScriptedCasts(ctx)


class _Unit:
    """Python's compilation unit: prepares what has been compiled in it, once what calls it is complete too."""

    def __init__(self, ctx: Context) -> None:
        import torch

        self._ctx = ctx
        self._functions = torch.jit._state._python_cu.get_functions
        self._known = {function.qualified_name for function in self._functions()}
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *exception: Any) -> None:
        self._depth -= 1
        if not self._depth and self._ctx.active:
            self.take_new()

    def take_new(self) -> None:
        functions = self._functions()
        if len(functions) < len(self._known):  # the program has dropped them all
            self._known.clear()
        new = [function for function in functions if function.qualified_name not in self._known]
        self._known.update(function.qualified_name for function in new)
        prepare(self._ctx, new)


_unit = functools.lru_cache(maxsize=1)(_Unit)
surface.forget("flagos_shim.patches.jit:_unit.cache_clear")


@surface.wrap("torch.jit._script:_script_impl", optional=True)
def script(ctx: Context, original: Any) -> Any:
    """`cuda` written in scripted code is the vendor's device when it runs."""
    if ctx.vendor.identity:
        return original
    unit = _unit(ctx)

    def _script_impl(obj: Any, optimize: Any = None, _frames_up: int = 0, *args: Any, **kwargs: Any) -> Any:
        with unit:
            return original(obj, optimize, _frames_up + 1, *args, **kwargs)

    return _script_impl


@surface.wrap("torch.jit._script:script", also=("torch.jit:script",))
def older_script(ctx: Context, original: Any) -> Any:
    """The same where this torch has no `_script_impl` (before 2.3) and `torch.jit.script` does all by itself."""
    from torch.jit import _script

    return original if hasattr(_script, "_script_impl") else script(ctx, original)


@surface.wrap("torch.jit._recursive:create_script_module")
def script_module(ctx: Context, original: Any) -> Any:
    """The methods of a module are scripted functions."""
    if ctx.vendor.identity:
        return original
    unit = _unit(ctx)

    def create_script_module(*args: Any, **kwargs: Any) -> Any:
        with unit:
            return original(*args, **kwargs)

    return create_script_module


@surface.wrap("torch._C:_create_function_from_trace")
@surface.wrap("torch._C:_create_function_from_trace_with_dict", optional=True)
def traced(ctx: Context, original: Any) -> Any:
    """A trace made on the vendor's device says `cuda`, and runs where its program did."""
    if ctx.vendor.identity:
        return original

    def create(*args: Any, **kwargs: Any) -> Any:
        function = original(*args, **kwargs)
        if ctx.active:
            prepare(ctx, (function,))
        return function

    return create


@surface.wrap("torch._C:ScriptModule._create_method_from_trace")
@surface.wrap("torch._C:ScriptModule._create_method_from_trace_with_dict", optional=True)
@surface.wrap("torch._C:ScriptModule._define")
def method(ctx: Context, original: Any) -> Any:
    """A method that is traced, or given as source, is treated like a scripted function."""
    if ctx.vendor.identity:
        return original

    def create(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if ctx.active:
            prepare(ctx, _methods(self))
        return result

    return create


def _methods(module: Any) -> list[Any]:
    """The methods of a module of C++'s, and of those in it."""
    import torch

    own = [module._get_method(name) for name in module._method_names()]
    return [*own, *(method for _, inner in torch._C.ModuleDict(module).items() for method in _methods(inner))]


@surface.wrap("torch._C:CompilationUnit.__init__")
def compilation_unit(ctx: Context, original: Any) -> Any:
    """Source given as a string is treated like a scripted function."""
    if ctx.vendor.identity:
        return original

    # Names in the source are looked up in the frame of the caller, which is one further away.
    def __init__(self: Any, lang: str = "", _frames_up: int = 0) -> None:
        original(self, lang, _frames_up + 1)
        if ctx.active:
            prepare(ctx, self.get_functions())

    return __init__


@surface.wrap("torch._C:CompilationUnit.define")
def define(ctx: Context, original: Any) -> Any:
    """Source added to a compilation unit is treated like a scripted function."""
    if ctx.vendor.identity:
        return original

    def define(self: Any, src: str, rcb: Any = None, _frames_up: int = 0) -> None:
        original(self, src, rcb, _frames_up + 1)
        if ctx.active:
            prepare(ctx, self.get_functions())

    return define


@surface.wrap("torch.jit._freeze:freeze", also=("torch.jit:freeze",))
def freeze(ctx: Context, original: Any) -> Any:
    """A frozen module is a new graph: the same holds for it."""
    if ctx.vendor.identity:
        return original

    def freeze(*args: Any, **kwargs: Any) -> Any:
        frozen = original(*args, **kwargs)
        if ctx.active:
            prepare(ctx, _methods(frozen._c))
        return frozen

    return freeze


@surface.wrap("torch._C:import_ir_module")
@surface.wrap("torch._C:import_ir_module_from_buffer")
@surface.wrap("torch._C:_import_ir_module_from_package", optional=True)
def import_module(ctx: Context, original: Any) -> Any:
    """What a loaded file says of `cuda` is done on the vendor's device."""
    if ctx.vendor.identity:
        return original

    def import_ir_module(unit: Any, *args: Any, **kwargs: Any) -> Any:
        module = original(unit, *args, **kwargs)
        if ctx.active:
            prepare(ctx, unit.get_functions())
        return module

    return import_ir_module


@surface.wrap("torch.jit._serialization:load", also=("torch.jit:load",))
def load(ctx: Context, original: Any) -> Any:
    """A file saved on CUDA, here or on another vendor's device is loaded onto the vendor's device."""
    if ctx.vendor.identity:
        return original

    known = tag_pattern(ctx.vendor.device_type)

    def rename(text: str) -> str:
        found = known.fullmatch(text)
        return text if found is None else str(ctx.make_device(None if found[1] is None else int(found[1])))

    # Where map_location says where tensors go, torch still reads the tag of each, and refuses what it does not know;
    # torch.device attributes and defaults are still the file's.
    def known_to_torch(text: str) -> str:
        return text if text.partition(":")[0] in ("cuda", ctx.device_type) else rename(text)

    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if ctx.active:
            source = f if isinstance(f, (str, os.PathLike)) else io.BytesIO(f.read())
            places = True if map_location is None else known_to_torch
            renamed = _renamed(source, rename, storages=places, code=False)
            f = source if renamed is None else io.BytesIO(renamed)
        return original(f, map_location, *args, **kwargs)

    return load


def _renamed(source: Any, rename: Rename, *, storages: Rename | bool, code: bool) -> bytes | None:
    try:
        return rename_devices(source, rename, storages=storages, code=code)
    except (OSError, zipfile.BadZipFile):
        return None  # not an archive of today's format: torch says what is wrong with it
    finally:
        if isinstance(source, io.BytesIO):
            source.seek(0)


def _portable(ctx: Context) -> Rename:
    """From the vendor's device to the name under which it is saved."""

    def rename(text: str) -> str:
        kind, colon, index = text.partition(":")
        return f"cuda{colon}{index}" if kind == ctx.device_type else text

    return rename


@surface.wrap("torch._C:ScriptModule.save")
@surface.wrap("torch._C:ScriptFunction.save")
def save(ctx: Context, original: Any) -> Any:
    """A saved module says `cuda`, so that it loads on a machine with neither this package nor the plugin."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original
    rename = _portable(ctx)

    def save(self: Any, filename: str, *args: Any, **kwargs: Any) -> None:
        original(self, filename, *args, **kwargs)
        if ctx.active:
            renamed = _renamed(filename, rename, storages=True, code=True)
            if renamed is not None:
                with open(filename, "wb") as file:
                    file.write(renamed)

    return save


@surface.wrap("torch._C:ScriptModule.save_to_buffer")
@surface.wrap("torch._C:ScriptFunction.save_to_buffer")
def save_to_buffer(ctx: Context, original: Any) -> Any:
    """The same for a module that is saved into memory."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original
    rename = _portable(ctx)

    def save_to_buffer(self: Any, *args: Any, **kwargs: Any) -> bytes:
        data: bytes = original(self, *args, **kwargs)
        renamed = _renamed(io.BytesIO(data), rename, storages=True, code=True) if ctx.active else None
        return data if renamed is None else renamed

    return save_to_buffer
