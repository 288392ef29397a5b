"""How the names of ``torch.cuda`` are told what they mean: declarations, and functions around a vendor's.

A name is declared where something must be said about it (``@stand_in("torch.cuda:is_available")``).  All others are
decided by ``_coverage.decide``: the plugin has the name, or torch's own code does over routed names, or it is refused.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable

from ._context import Context

Build = Callable[[Context, Any], Any]

# Parameters of torch.cuda's functions at which a program names a device.
_DEVICE_PARAMETERS = ("device", "peer_device")
_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class StandIn:
    """What stands at ``target`` ("module:name"); see `stand_in`."""

    target: str
    build: Build
    verb: str

    @property
    def how(self) -> str:
        """The first line of the builder's docstring: what the table and ``status`` say."""
        return (self.build.__doc__ or "").strip().partition("\n")[0]


DECLARED: dict[str, StandIn] = {}


def stand_in(*targets: str, verb: str = "wrap") -> Callable[[Build], Build]:
    """Declare what stands for names of torch.cuda; the copies of the same object elsewhere in torch.cuda follow.

    Args:
        targets: "module:name".
        verb: "wrap" for a function, "replace" for any other object; see `_patching.Patch`.
    """

    def declare(build: Build) -> Build:
        for target in targets:
            DECLARED[target] = StandIn(target, build, verb)
        return build

    return declare


def find(ctx: Context, name: str) -> Any:
    """What the vendor's device module has for a dotted name of torch.cuda, or None.

    The vendor's own name is used where ``renames`` has one.
    """
    found = ctx.module
    for part in ctx.vendor.renames.get(name, name).split("."):
        found = getattr(found, part, None)
    return found


def unsupported(ctx: Context, name: str) -> Exception:
    """The one error for a name that the vendor has nothing for: says the vendor, the name, and what to use."""
    advice = ctx.vendor.absent.get(name) or ADVICE.get(name) or "remove the call, or guard it"
    return NotImplementedError(f"torch.cuda.{name} is not supported on {ctx.vendor.title}: {advice}.")


# What to use instead, where that does not depend on the vendor.
ADVICE: dict[str, str] = {}


def index_of(ctx: Context, device: Any) -> int | None:
    """The ordinal in what torch.cuda takes as ``device``; None means the current one; negative passes as it is.

    Raises:
        ValueError: another kind of device.
        torch.AcceleratorError (RuntimeError before torch 2.8): there is no such ordinal.
    """
    if device is None:
        return None
    import torch

    if device.__class__ is torch.cuda.device:
        index: int | None = device.idx
    else:
        index = ctx.ordinal(device)
    if index is not None and index >= torch.cuda.device_count():
        raise invalid_ordinal(index)
    return index


def invalid_ordinal(index: int) -> Exception:
    """CUDA's own error for an ordinal that does not exist."""
    import torch

    count = torch.cuda.device_count()
    kind: Any = getattr(torch, "AcceleratorError", RuntimeError)
    error: Exception = kind(f"CUDA error: invalid device ordinal\nDevice {index} was asked for, there are {count}.")
    return error


def forward(ctx: Context, original: Any, target: Any, name: str) -> Any:
    """A function with torch.cuda's signature around the vendor's: devices become ordinals, renamed keywords are mapped.

    Args:
        original: torch's function; what runs when dormant.
        target: the vendor's function.
        name: the name in torch.cuda, for the error where the vendor lacks an argument that is given.
    """
    ours = inspect.signature(original)
    names = list(ours.parameters)
    if not names:

        def plain(*args: Any, **kwargs: Any) -> Any:
            return target(*args, **kwargs) if ctx.active else original(*args, **kwargs)

        return plain
    mapping = _mapping(ours, target)
    if names == ["device"] and mapping["device"] is not None:

        def query(device: Any = None) -> Any:
            if not ctx.active:
                return original(device)
            index = index_of(ctx, device)
            return target() if index is None else target(index)

        if ours.parameters["device"].default is not _EMPTY:
            return query

    def call(*args: Any, **kwargs: Any) -> Any:
        if not ctx.active:
            return original(*args, **kwargs)
        theirs = {}
        for given, value in ours.bind(*args, **kwargs).arguments.items():
            default = ours.parameters[given].default
            if given in _DEVICE_PARAMETERS:
                value = index_of(ctx, value)
                if value is None:
                    if default is not _EMPTY:
                        continue
                    value = ctx.module.current_device()
            place = mapping[given]
            if place is not None:
                theirs[place] = value
            elif value != default:
                raise unsupported(ctx, f"{name}({given}=)")
        return target(**theirs)

    return call


def _mapping(ours: inspect.Signature, target: Any) -> dict[str, str | None]:
    """Our parameter -> the vendor's name for it (by name, else by position), or None where it has none."""
    try:
        theirs = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {name: name for name in ours.parameters}
    anything = any(p.kind is p.VAR_KEYWORD for p in theirs.values())
    mapping: dict[str, str | None] = {}
    for position, name in enumerate(ours.parameters):
        if name in theirs or anything:
            mapping[name] = name
            continue
        other = list(theirs)[position] if position < len(theirs) else None
        mapping[name] = other if other is not None and other not in ours.parameters else None
    return mapping


def refusing(ctx: Context, original: Any, name: str) -> Any:
    """What stands for a name that is not supported: a function or class that raises `unsupported` when used."""
    if not isinstance(original, type):

        def refuse(*args: Any, **kwargs: Any) -> Any:
            if not ctx.active:
                return original(*args, **kwargs)
            raise unsupported(ctx, name)

        return refuse

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise unsupported(ctx, name)

    body: dict[str, Any] = {"__new__": make, "__doc__": original.__doc__, "__module__": original.__module__}
    for attribute, value in vars(original).items():
        if isinstance(value, (staticmethod, classmethod)) and attribute != "__new__":
            body[attribute] = staticmethod(refusing(ctx, getattr(original, attribute), f"{name}.{attribute}"))
    return type(original.__name__, (), body)
