"""``torch.save`` and ``torch.load``: files say ``cuda:N``, whoever wrote them."""

from __future__ import annotations

import functools
from typing import Any

from .._context import Context
from .._devices import parse, tag_pattern
from .._patching import Surface

surface = Surface("serialization")

# Asked before torch's own entries (10 for the CPU, 20 for CUDA) and the plugin's.
_PRIORITY = 5


@surface.enrol("torch.serialization:_package_registry")
def location(ctx: Context, _registry: Any) -> Any:
    """Storages of the vendor's device are saved with the tag `cuda:N`; tags of any accelerator load onto it."""
    known = tag_pattern(ctx.vendor.device_type)

    def tag(storage: Any) -> str | None:
        if not ctx.owns(storage.device):
            return None
        index = storage.device.index
        return "cuda" if index is None else f"cuda:{index}"

    def restore(storage: Any, where: Any) -> Any:
        found = known.fullmatch(where) if isinstance(where, str) else None
        if found is None:
            return None
        if not ctx.vendor.indexed:
            return storage
        index = None if found[1] is None else int(found[1])
        count = ctx.module.device_count()
        if index is not None and index >= count:
            raise RuntimeError(
                f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {count}. "
                "Please use torch.load with map_location to map your storages to an existing device."
            )
        place = ctx.make_device(index)
        if hasattr(storage, "to"):
            return storage.to(device=place)
        return getattr(storage, str(ctx.device_type))(place)  # before torch 2.3, the method that torch made for plugins

    return _PRIORITY, tag, restore


def _by_tags(ctx: Context, places: dict[Any, Any]) -> dict[Any, Any]:
    """A copy that also knows by its tag, ``cuda:N``, what the program named by the text of a device."""
    found = dict(places)
    for key, value in places.items():
        named = parse(str.__str__(key), (ctx.vendor.device_type,)) if isinstance(key, str) else None
        if named is not None:
            found.setdefault("cuda" if named[1] is None else f"cuda:{named[1]}", value)
    return found


@surface.wrap("torch.serialization:_get_restore_location", optional=True)
def restore_location(ctx: Context, original: Any) -> Any:
    """A `map_location` dictionary may name devices by their own text, `{str(x.device): "cpu"}`."""
    if not ctx.vendor.indexed:
        return original

    def _get_restore_location(map_location: Any) -> Any:
        return original(_by_tags(ctx, map_location) if ctx.active and isinstance(map_location, dict) else map_location)

    return _get_restore_location


@surface.replace("torch:load")
def load(ctx: Context, original: Any) -> Any:
    """Torch's own `torch.load`: a plugin's own loses `map_location` and shared storages in files of the old format."""
    from torch.serialization import load as torchs

    if original is torchs:
        return original
    prepare = ctx.vendor.read("before_load")

    @functools.wraps(torchs)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not ctx.active:
            return original(f, map_location, *args, **kwargs)
        if prepare is not None:
            prepare(map_location)
        return torchs(f, map_location, *args, **kwargs)

    load.__module__ = "torch"  # where pickle finds it: the one in torch.serialization is torch's own
    return load


@surface.wrap("torch:Tensor._reduce_ex_internal")
def reduce(ctx: Context, original: Any) -> Any:
    """A tensor without storage (a sparse one) that torch pickles by way of the CPU says `cuda:N` like all others."""
    if not ctx.vendor.indexed:
        return original
    from torch import _utils

    # By way of a NumPy array in torch 2.4, by way of a CPU tensor in 2.7.
    names = ("_rebuild_device_tensor_from_cpu_tensor", "_rebuild_device_tensor_from_numpy")
    makers = {getattr(_utils, name, None) for name in names}

    def _reduce_ex_internal(self: Any, proto: Any) -> Any:
        make, args = original(self, proto)
        if make in makers and ctx.active and ctx.owns(self.device):
            data, dtype, _, requires_grad = args
            args = (data, dtype, f"cuda:{self.get_device()}", requires_grad)
        return make, args

    return _reduce_ex_internal
