"""The old type names: ``torch.cuda.FloatTensor`` and its kin, typed storages, ``Tensor.type``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import find, stand_in
from .._patching import Patch
from .._slots import Constructor

PREFIX = "torch.cuda."
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by Python code, which translates by itself
_DEFAULTS = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor")  # torch's default is a floating-point type
TENSORS = (*_DEFAULTS, "ByteTensor", "CharTensor", "ShortTensor", "IntTensor", "LongTensor", "BoolTensor")


def tensor_types(ctx: Context) -> Iterator[Patch]:
    """`x.type()` says `torch.cuda.FloatTensor`, and takes it."""
    yield Patch("torch:Tensor.type", _type, (tensor_types.__doc__ or "").strip())
    why = "`torch.cuda.FloatStorage` is of the vendor's device; torch reads that from the module of the class."
    yield Patch("torch.storage:_get_device_from_module", _device_from_module, why)
    for name in TENSORS:
        kind = find(ctx, name)
        if isinstance(kind, type) and not kind.__flags__ & _HEAP_TYPE:  # made in C++, which knows no alias
            home = ctx.vendor.namespace if ctx.vendor.indexed else "torch"
            why = "`torch.cuda.FloatTensor(2, device='cuda:0')` is made on the vendor's device."
            yield Patch(f"{home}:{name}", rewrite_device_keyword, why, "construct", probe=None)
    if ctx.vendor.indexed:
        why = "`torch.Tensor(2)` is made on the device of the default tensor type."
        yield Patch("torch:Tensor", DefaultTensor, why, "install")
        why = "`torch.cuda.FloatTensor` as default sends new tensors to the vendor's device."
        yield Patch("torch:set_default_tensor_type", _default, why)


def rewrite_device_keyword(ctx: Context, _type: Any) -> Any:
    """The device given to a legacy constructor becomes the vendor's."""

    def rewrite(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if "device" in kwargs:
            kwargs["device"] = ctx.translate(kwargs["device"])
        return args, kwargs

    return rewrite


def _device_from_module(ctx: Context, original: Any) -> Any:
    def _get_device_from_module(module: str) -> Any:
        found = original(module)
        return ctx.device_type if ctx.active and found == "cuda" else found

    return _get_device_from_module


class DefaultTensor:
    """The constructor of ``torch.Tensor`` while a type of the vendor's is the default tensor type; torch's own else.

    C++ makes such a tensor by the default of its own table, which has no place for a plugin's types.
    """

    def __init__(self, ctx: Context, owner: Any) -> None:
        """Args: ctx: remembers this object under "default_tensor"; owner: ``torch.Tensor``."""
        self._ctx, self._owner = ctx, owner
        self._constructor: Constructor | None = None

    def install(self) -> None:
        """Be there for `switch`; nothing is changed until a program asks for it."""
        self._ctx.remembered["default_tensor"] = self

    def switch(self, on: bool) -> None:
        """Let ``torch.Tensor`` construct on the vendor's device, or as torch does."""
        if on and self._constructor is None:
            constructor = Constructor(self._owner, self._rewrite, ())
            constructor.install()
            self._constructor = constructor
        elif not on and self._constructor is not None:
            self._constructor.restore()
            self._constructor = None

    def covered(self) -> bool:
        """True where somebody else has replaced the constructor since."""
        return self._constructor is not None and self._constructor.covered()

    def restore(self) -> None:
        """Put torch's own constructor back."""
        self.switch(False)

    def _rewrite(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        import torch

        if kwargs or (args and isinstance(args[0], torch.Tensor)):
            return args, kwargs
        dtype = torch.get_default_dtype()
        kind = next(kind for kind in (getattr(self._ctx.module, name) for name in _DEFAULTS) if kind.dtype is dtype)
        return (kind(*args),), {}


def _type(ctx: Context, original: Any) -> Any:
    import torch

    own = f"{ctx.vendor.namespace}."
    overridden = torch._C._has_torch_function_unary

    def type(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not ctx.active or overridden(self):  # __torch_function__ sees what the program wrote, and calls us again
            return original(self, *args, **kwargs)
        return typed(self, *args, **kwargs)

    def typed(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if dtype is None:
            name = original(self)
            return PREFIX + name[len(own) :] if isinstance(name, str) and name.startswith(own) else name
        kind = _named(dtype)
        if isinstance(kind, (str, torch.dtype)) or not any(kind is getattr(torch.cuda, n, None) for n in TENSORS):
            return original(self, kind, non_blocking, **kwargs)
        # By data type and place, since the types of some plugins are not torch's own kind of type.
        place = self.device if self.device.type == ctx.device_type else ctx.make_device(None)
        return self.to(place, kind.dtype, non_blocking=non_blocking)

    return type


def _named(kind: Any) -> Any:
    """The type behind a name such as "torch.cuda.FloatTensor"; anything else as it is."""
    import torch

    if not isinstance(kind, str) or not kind.startswith(PREFIX):
        return kind
    found: Any = torch.cuda
    for part in kind[len(PREFIX) :].split("."):
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
            ctx.remembered["default_tensor"].switch(True)
            return
        if ctx.remembered.pop("default_tensor_type", False):
            torch.set_default_device(None)
            ctx.remembered["default_tensor"].switch(False)
        original(t)

    return set_default_tensor_type


def _typed_storage(name: str) -> None:
    @stand_in(f"torch.cuda:{name}", verb="replace")
    def build(ctx: Context, original: Any) -> Any:
        """a typed storage of the vendor's, made like torch's where it has none"""
        import torch

        theirs = find(ctx, name)
        # torch reads from the module's last name where such a storage lies, and takes some plugins' for the host's.
        if theirs is not None and theirs.__module__.rpartition(".")[2] == ctx.device_type:
            return theirs
        dtype = torch._utils.classproperty(lambda cls: original._dtype)
        return type(name, original.__bases__, {"dtype": dtype, "_dtype": dtype, "__module__": "torch.cuda"})


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
