"""How the names of ``torch.cuda`` are told what they mean: declarations, and functions around a vendor's.

A name is declared where something must be said about it (``@stand_in("torch.cuda:is_available")``).  All others are
decided by ``_coverage.decide``: the plugin has the name, or torch's own code does over routed names, or it is refused.
"""

from __future__ import annotations

import functools
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
    needs: str | None = None

    @property
    def how(self) -> str:
        """The first line of the builder's docstring: what the table and ``status`` say."""
        return (self.build.__doc__ or "").strip().partition("\n")[0]


DECLARED: dict[str, StandIn] = {}


def stand_in(*targets: str, verb: str = "wrap", needs: str | None = None) -> Callable[[Build], Build]:
    """Declare what stands for names of torch.cuda; the copies of the same object elsewhere in torch.cuda follow.

    Args:
        targets: "module:name".
        verb: "wrap" for a function, "replace" for any other object; see `_patching.Patch`.
        needs: a name of torch.cuda; where the vendor has nothing for it, the targets are unsupported.
    """

    def declare(build: Build) -> Build:
        for target in targets:
            DECLARED[target] = StandIn(target, build, verb, needs)
        return build

    return declare


def vendor_name(ctx: Context, name: str) -> str:
    """The vendor's dotted name for one of torch.cuda; ``renames`` may give it for the whole or for a leading part."""
    head, tail = name, ""
    while head:
        if head in ctx.vendor.renames:
            return ctx.vendor.renames[head] + tail
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return name


def find(ctx: Context, name: str) -> Any:
    """What the vendor's device module has for a dotted name of torch.cuda, or None."""
    found = ctx.module
    for part in vendor_name(ctx, name).split("."):
        found = getattr(found, part, None)
    return found


def unsupported(ctx: Context, name: str) -> Exception:
    """The one error for a name that the vendor has nothing for: says the vendor, the name, and what to use."""
    return NotImplementedError(f"torch.cuda.{name} is not supported on {ctx.vendor.title}: {advice(ctx, name)}.")


def advice(ctx: Context, name: str) -> str:
    """What to use instead of a name of torch.cuda, or of a method or an argument of it ("Event(external=True)")."""
    known = {**ADVICE, **ctx.vendor.absent}
    name = name.partition("(")[0]
    return known.get(name) or known.get(name.rpartition(".")[0]) or "remove the call, or guard it"


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


def invalid_ordinal(index: int | None = None) -> Exception:
    """CUDA's own error for an ordinal that does not exist; None where it is not known which one was asked for."""
    import torch

    count = torch.cuda.device_count()
    asked = "A device that is not there" if index is None else f"Device {index}"
    kind: Any = getattr(torch, "AcceleratorError", RuntimeError)
    error: Exception = kind(f"CUDA error: invalid device ordinal\n{asked} was asked for, there are {count}.")
    return error


def forward(ctx: Context, original: Any, target: Any, name: str) -> Any:
    """A function with torch.cuda's signature around the vendor's: devices become ordinals, renamed keywords are mapped.

    Args:
        original: torch's function; what runs when dormant.
        target: the vendor's function.
        name: the name in torch.cuda, for the error where the vendor lacks an argument that is given.
    """
    ours = parameters(original)
    if ours is None or not ours:

        def plain(*args: Any, **kwargs: Any) -> Any:
            return target(*args, **kwargs) if ctx.active else original(*args, **kwargs)

        return plain
    mapping = _mapping(list(ours), parameters(target))
    if list(ours) == ["device"] and mapping["device"] is not None and ours["device"] is not _EMPTY:

        def query(device: Any = None) -> Any:
            if not ctx.active:
                return original(device)
            index = index_of(ctx, device)
            return target() if index is None else target(index)

        return query
    by_position = not hasattr(inspect.unwrap(target), "__code__")  # a builtin may take no keywords
    signature = functools.lru_cache(maxsize=1)(functools.partial(inspect.signature, original))

    def call(*args: Any, **kwargs: Any) -> Any:
        if not ctx.active:
            return original(*args, **kwargs)
        theirs = {}
        for given, value in signature().bind(*args, **kwargs).arguments.items():
            if given in _DEVICE_PARAMETERS:
                value = index_of(ctx, value)
                if value is None:
                    if ours[given] is not _EMPTY:
                        continue
                    value = ctx.module.current_device()
            place = mapping[given]
            if place is not None:
                theirs[place] = value
            elif value != ours[given]:
                raise unsupported(ctx, f"{name}({given}=)")
        return target(*theirs.values()) if by_position else target(**theirs)

    return call


def parameters(function: Any) -> dict[str, Any] | None:
    """Names and defaults of a Python function's parameters; None where they cannot be told (a builtin, ``*args``).

    Read from the code object, since ``inspect.signature`` on every name of torch.cuda would take milliseconds.
    """
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found: dict[str, Any] = dict.fromkeys(names, _EMPTY)
    defaults = function.__defaults__ or ()
    found.update(zip(names[code.co_argcount - len(defaults) : code.co_argcount], defaults))
    found.update(function.__kwdefaults__ or {})
    return found


def _mapping(ours: list[str], theirs: dict[str, Any] | None) -> dict[str, str | None]:
    """Our parameter -> the vendor's name for it (by name, else by position), or None where it has none."""
    if theirs is None:
        return {name: name for name in ours}
    order = list(theirs)
    mapping: dict[str, str | None] = {}
    for position, name in enumerate(ours):
        other = order[position] if position < len(order) else None
        mapping[name] = name if name in theirs else other if other not in ours else None
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
