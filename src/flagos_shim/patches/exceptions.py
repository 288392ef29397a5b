"""Vendors' errors in torch's own terms, translated where the exception object comes to be.

The plugin's C++ code raises by calling an exception class with a text.  So the classes that it calls are given a
constructor which reads the text: every device error, from whatever call, is then torch's own class with the standard
words before anybody can catch it, no function needs a wrapper, and nothing is spent where nothing is raised.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from .._context import Context
from .._patching import Surface
from .._slots import ExceptionSlots

surface = Surface("exceptions")


class _Translating(threading.local):
    """True while this thread builds a translated exception, whose own construction must not be translated again."""

    busy = False


_state = _Translating()


def _translated(ctx: Context, exc: BaseException) -> BaseException:
    """The exception torch would raise for ``exc``; ``exc`` itself where it is not the device's."""
    if _state.busy or not ctx.active or sys.is_finalizing():
        return exc
    _state.busy = True
    # Set by Python only when the exception is raised; a program that quotes the error it handles keeps its own words.
    exc.__context__ = sys.exc_info()[1]
    try:
        from .._translate import translate  # with the vendor's tables at the first error: most runs have none

        return translate(exc, ctx.vendor.name, ctx.vendor.read("errors"), ctx.vendor.read("error_codes"))
    finally:
        exc.__context__ = None
        _state.busy = False


@surface.install("builtins:RuntimeError")
def runtime_error(ctx: Context, original: Any) -> Any:
    """A plain RuntimeError with a vendor's text becomes the class torch raises for CUDA."""
    native_init = RuntimeError.__init__

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        exc: BaseException = BaseException.__new__(cls, *args, **kwargs)
        if cls is RuntimeError and len(args) == 1 and args[0].__class__ is str:
            native_init(exc, *args)
            return _translated(ctx, exc)
        return exc

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        # Python initialises what `new` returned with the arguments of the call, which are the vendor's text.
        if "vendor_code" not in self.__dict__ or _state.busy:
            native_init(self, *args, **kwargs)

    return ExceptionSlots(original, new=new, init=init)


@surface.install("builtins:NotImplementedError")
def not_implemented_error(ctx: Context, original: Any) -> Any:
    """Keeps the text of a translated error; a plugin's own NotImplementedError is translated too."""
    native_init = original.__init__

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        return BaseException.__new__(cls, *args, **kwargs)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _adopt(ctx, native_init, self, *args, **kwargs)

    return ExceptionSlots(original, new=new, init=init)


def _adopt(ctx: Context, native_init: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    """Initialise ``self``; where the text is a vendor's, with the words and attributes of its translation."""
    if "vendor_code" in self.__dict__ and not _state.busy:
        return
    native_init(self, *args, **kwargs)
    if len(args) != 1 or args[0].__class__ is not str:
        return
    found = _translated(ctx, self)
    if found is not self:
        raw = BaseException.__new__(RuntimeError, *args)
        native_init(self, *found.args)
        self.__dict__.update(found.__dict__)
        self.__cause__ = raw


@surface.replace("torch:OutOfMemoryError.__init__", optional=True)
@surface.replace("torch:AcceleratorError.__init__", optional=True)
@surface.replace("torch.distributed:DistBackendError.__init__", optional=True)
def in_place(ctx: Context, original: Any) -> Any:
    """Torch's own error class, raised by the plugin: the text begins with torch's words, and it has the attributes."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _adopt(ctx, original, self, *args, **kwargs)

    return __init__
