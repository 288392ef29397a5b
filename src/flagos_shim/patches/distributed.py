"""``torch.distributed``: ``nccl`` means the vendor's collectives, and ``get_backend()`` still answers to ``nccl``."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from .._context import Context
from .._device_type import DeviceType, collective_name, is_internal
from .._patching import Surface

surface = Surface("distributed")

_C10D = "torch.distributed.distributed_c10d"


def translate_backend(ctx: Context, backend: Any) -> Any:
    """The vendor's spelling of a back end string: "nccl", "flagos", or "cpu:gloo,cuda:nccl"; all else as it is."""
    collective = ctx.vendor.collective
    if not isinstance(backend, str) or collective is None or not ctx.active:
        return backend
    pairs = []
    for part in str.__str__(backend).split(","):
        device, colon, name = part.rpartition(":")
        name = collective if name.strip().lower() in ("nccl", "flagos") else name
        if colon:
            device = ctx.device_type or device if device.strip().lower() in ctx.aliases else device
        pair = f"{device}{colon}{name}"
        if pair not in pairs:  # on cpu "cpu:gloo,cuda:nccl" names the same pair twice
            pairs.append(pair)
    return ",".join(pairs)


def _shown(ctx: Context, name: Any) -> Any:
    """What a program that asks is given: the vendor's names, which also equal CUDA's ("nccl", "cpu:gloo,cuda:nccl")."""
    if not ctx.active or not ctx.vendor.indexed or not isinstance(name, str):
        return name
    cuda = {ctx.device_type: "cuda", ctx.vendor.collective: "nccl"}
    alias = ",".join(":".join(cuda.get(word, word) for word in part.split(":")) for part in name.split(","))
    return name if alias == name else collective_name(str(name), alias)


@surface.wrap(f"{_C10D}:init_process_group", also=("torch.distributed:init_process_group",), optional=True)
def init_process_group(ctx: Context, original: Any) -> Any:
    """`init_process_group("nccl")` starts the vendor's collectives."""

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not ctx.active:
            return original(backend, *args, **kwargs)
        if not ctx.vendor.indexed and kwargs.get("device_id") is not None:
            kwargs["device_id"] = None  # the CPU cannot be bound; torch takes only accelerators here
        elif isinstance(kwargs.get("device_id"), str):
            kwargs["device_id"] = ctx.accelerator(kwargs["device_id"])
        return original(translate_backend(ctx, backend), *args, **kwargs)

    return init_process_group


@surface.wrap(f"{_C10D}:new_group", also=("torch.distributed:new_group",), optional=True)
@surface.wrap(f"{_C10D}:_new_group_with_tag", optional=True)
@surface.wrap(f"{_C10D}:split_group", also=("torch.distributed:split_group",), optional=True)
@surface.wrap(f"{_C10D}:new_subgroups", also=("torch.distributed:new_subgroups",), optional=True)
@surface.wrap(
    f"{_C10D}:new_subgroups_by_enumeration", also=("torch.distributed:new_subgroups_by_enumeration",), optional=True
)
def with_backend(ctx: Context, original: Any) -> Any:
    """A group asked for with `nccl` uses the vendor's collectives."""
    names = original.__code__.co_varnames[: original.__code__.co_argcount]
    at = names.index("backend") if "backend" in names else None

    def group(*args: Any, **kwargs: Any) -> Any:
        if "backend" in kwargs:
            kwargs["backend"] = translate_backend(ctx, kwargs["backend"])
        elif at is not None and len(args) > at:
            args = (*args[:at], translate_backend(ctx, args[at]), *args[at + 1 :])
        return original(*args, **kwargs)

    return group


@surface.wrap(f"{_C10D}:get_backend", also=("torch.distributed:get_backend",), optional=True)
@surface.wrap(
    f"{_C10D}:get_default_backend_for_device", also=("torch.distributed:get_default_backend_for_device",), optional=True
)
def shown(ctx: Context, original: Any) -> Any:
    """`get_backend() == "nccl"` holds in the program's code."""

    def get_backend(*args: Any, **kwargs: Any) -> Any:
        return _shown(ctx, original(*args, **kwargs))

    return get_backend


@surface.wrap(f"{_C10D}:is_nccl_available", also=("torch.distributed:is_nccl_available",), optional=True)
def is_nccl_available(ctx: Context, original: Any) -> Any:
    """True where the vendor's collectives are registered."""
    from torch.distributed import distributed_c10d

    def is_nccl_available() -> bool:
        if not ctx.active:
            return bool(original())
        return ctx.vendor.collective in distributed_c10d.Backend.backend_list

    return is_nccl_available


@surface.wrap(f"{_C10D}:is_backend_available", also=("torch.distributed:is_backend_available",), optional=True)
def is_backend_available(ctx: Context, original: Any) -> Any:
    """Asked for `nccl`, answers for the vendor's collectives."""

    def is_backend_available(backend: str) -> bool:
        return bool(original(translate_backend(ctx, backend)))

    return is_backend_available


@surface.provide("torch.distributed:ProcessGroupNCCL")
def process_group(ctx: Context, original: Any) -> Any:
    """The class of the vendor's process group, for its `Options` and for isinstance."""
    from .._patching import MISSING

    if ctx.vendor.process_group is None:
        return original if original is not MISSING else None
    module_name, _, name = ctx.vendor.process_group.partition(":")
    # None where the plugin was built without its collectives.
    found: Any = sys.modules[module_name]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _device_type_first(ctx: Context, original: Any) -> Any:
    """`init_device_mesh("cuda", ...)`: a mesh of the vendor's devices."""

    def mesh(*args: Any, **kwargs: Any) -> Any:
        for i, value in enumerate(args[:2]):
            if isinstance(value, str):
                args = (*args[:i], ctx.device_kind(value), *args[i + 1 :])
        if "device_type" in kwargs:
            kwargs["device_type"] = ctx.device_kind(kwargs["device_type"])
        return original(*args, **kwargs)

    return mesh


surface.wrap(
    "torch.distributed.device_mesh:init_device_mesh", also=("torch.distributed:init_device_mesh",), optional=True
)(_device_type_first)
surface.wrap("torch.distributed.device_mesh:DeviceMesh.__init__", optional=True)(_device_type_first)


@surface.replace("torch.distributed.device_mesh:DeviceMesh.device_type", optional=True)
def mesh_device_type(ctx: Context, original: Any) -> Any:
    """`mesh.device_type == "cuda"` holds in the program's code, as `device.type` does."""
    if not ctx.vendor.indexed:
        return original

    def device_type(self: Any) -> Any:
        name = original.__get__(self)
        if name != ctx.device_type or is_internal(sys._getframe(1)):
            return name
        return DeviceType(name)

    return property(device_type)


@surface.wrap("torch.nn.parallel.distributed:DistributedDataParallel.__init__", optional=True)
def data_parallel(ctx: Context, original: Any) -> Any:
    """`DistributedDataParallel(model, device_ids=[0])`: the vendor's devices; on the CPU torch takes none."""

    def __init__(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *rest: Any, **kwargs: Any
    ) -> None:
        if ctx.active and not ctx.vendor.indexed:
            device_ids = output_device = None
        elif device_ids is not None:
            device_ids = [ctx.translate(device) for device in device_ids]
            output_device = ctx.translate(output_device)
        original(self, module, device_ids, output_device, *rest, **kwargs)

    return __init__


@surface.wrap("torch.nn.parallel.distributed:DistributedDataParallel._check_comm_hook", optional=True)
def check_comm_hook(ctx: Context, original: Any) -> Any:
    """The bfloat16 hooks are not refused for want of a CUDA version, which no vendor's build of torch has."""

    def _check_comm_hook(self: Any, hook: Any) -> Any:
        if ctx.active and isinstance(hook, FunctionType) and hook.__name__.startswith("bf16_compress"):
            # Torch decides by the name; the signature, which it also looks at, is that of the hook.
            copy = FunctionType(hook.__code__, hook.__globals__, "hook", hook.__defaults__, hook.__closure__)
            copy.__annotations__ = hook.__annotations__
            hook = copy
        return original(self, hook)

    return _check_comm_hook


@surface.wrap(f"{_C10D}:ProcessGroup.allreduce", optional=True)
def allreduce(ctx: Context, original: Any) -> Any:
    """The average of integers, which NCCL gives and the vendors' collectives do not."""
    from torch.distributed import AllreduceOptions, ReduceOp

    if not ctx.vendor.indexed:
        return original

    def allreduce(self: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        options = args[0] if args else kwargs.get("opts")
        if (
            not isinstance(options, AllreduceOptions)
            or options.reduceOp != ReduceOp.AVG
            or not isinstance(tensors, list)
        ):
            return original(self, tensors, *args, **kwargs)
        whole = [t for t in tensors if ctx.owns(t.device) and not t.is_floating_point() and not t.is_complex()]
        if not whole or len(whole) < len(tensors):
            return original(self, tensors, *args, **kwargs)
        options.reduceOp = ReduceOp.SUM
        work = original(self, tensors, *args, **kwargs)
        work.wait()  # the division is to come after the sum
        for tensor in whole:
            tensor.div_(self.size(), rounding_mode="trunc")
        return work

    return allreduce
