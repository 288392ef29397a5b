"""The old type names: ``torch.cuda.FloatTensor`` and its kin, typed storages, ``Tensor.type``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import find, stand_in
from .._patching import Patch

_PREFIX = "torch.cuda."
_DEFAULTS = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor")  # torch's default is a floating-point type
_TENSORS = (*_DEFAULTS, "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor", "BoolTensor")


def tensor_types(ctx: Context) -> Iterator[Patch]:
    """`x.type()` says `torch.cuda.FloatTensor`, and takes it."""
    yield Patch("torch:Tensor.type", _type, (tensor_types.__doc__ or "").strip())
    if ctx.vendor.indexed:
        why = "`torch.cuda.FloatTensor` as default sends new tensors to the vendor's device."
        yield Patch("torch:set_default_tensor_type", _default, why)


def _type(ctx: Context, original: Any) -> Any:
    import torch

    own = f"{ctx.vendor.namespace}."

    def type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if not ctx.active:
            return original(self, dtype, non_blocking, **kwargs)
        if dtype is None:
            name = original(self)
            return _PREFIX + name[len(own) :] if isinstance(name, str) and name.startswith(own) else name
        kind = _named(dtype)
        if isinstance(kind, (str, torch.dtype)) or not any(kind is getattr(torch.cuda, n, None) for n in _TENSORS):
            return original(self, kind, non_blocking, **kwargs)
        # By data type and place, since the types of some plugins are not torch's own kind of type.
        place = self.device if self.device.type == ctx.device_type else ctx.make_device(None)
        return self.to(place, kind.dtype, non_blocking=non_blocking)

    return type


def _named(kind: Any) -> Any:
    """The type behind a name such as "torch.cuda.FloatTensor"; anything else as it is."""
    import torch

    if not isinstance(kind, str) or not kind.startswith(_PREFIX):
        return kind
    found: Any = torch.cuda
    for part in kind[len(_PREFIX) :].split("."):
        found = getattr(found, part, None)
    return kind if found is None else found


def _default(ctx: Context, original: Any) -> Any:
    import torch

    def set_default_tensor_type(t: Any) -> None:
        kind = _named(t) if ctx.active else t
        ours = any(kind is getattr(ctx.module, name, None) for name in _DEFAULTS) if ctx.active else False
        if ours:
            # torch takes only its own types here, so the data type and the device are set one by one.
            torch.set_default_dtype(kind.dtype)
            torch.set_default_device(ctx.make_device(None))
            ctx.remembered["default_tensor_type"] = True
            return
        if ctx.remembered.pop("default_tensor_type", False):
            torch.set_default_device(None)
        original(t)

    return set_default_tensor_type


def _typed_storage(name: str) -> None:
    @stand_in(f"torch.cuda:{name}", verb="replace")
    def build(ctx: Context, original: Any) -> Any:
        """a typed storage of the vendor's, made like torch's where it has none"""
        import torch

        theirs = find(ctx, name)
        # torch reads from the module's last name where such a storage lies, and so takes some plugins' for the host's.
        if theirs is not None and theirs.__module__.rpartition(".")[2] == ctx.device_type:
            return theirs
        dtype = torch._utils.classproperty(lambda cls: original._dtype)
        return type(name, original.__bases__, {"dtype": dtype, "_dtype": dtype, "__module__": ctx.vendor.namespace})


for _name in (
    "BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat",
    "Double", "Float", "Half", "Int", "Long", "Short",
):  # fmt: skip
    _typed_storage(f"{_name}Storage")


class SparseType(type):
    """The type of ``torch.cuda.sparse.FloatTensor`` and its kin: a tensor is an instance by layout, place and dtype."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return bool(
            getattr(instance, "is_sparse", False)
            and instance.dtype is cls.dtype  # type: ignore[attr-defined]
            and instance.device.type == cls.place.type  # type: ignore[attr-defined]
        )


def _sparse(name: str) -> None:
    @stand_in(f"torch.cuda.sparse:{name}", verb="replace")
    def build(ctx: Context, original: Any) -> Any:
        """makes a sparse COO tensor on the vendor's device"""
        import torch

        place, dtype = ctx.make_device(None), getattr(torch, name).dtype

        def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > 2 or (len(args) == 2 and isinstance(args[0], torch.Tensor)):
                return torch.sparse_coo_tensor(*args, dtype=dtype, device=place, check_invariants=True, **kwargs)
            size = args[0] if args and isinstance(args[0], (tuple, list)) else args or (0,)
            return torch.sparse_coo_tensor(size, dtype=dtype, device=place)

        body = {"__new__": __new__, "__module__": "torch.cuda.sparse", "dtype": dtype, "place": place}
        return SparseType(name, (), body)


for _name in ("BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"):
    _sparse(f"{_name}Tensor")
