"""Vendors' errors in torch's own terms, translated where the exception object comes to be.

The plugin's C++ code raises by calling an exception class with a text.  So the classes that it calls are given a
constructor which reads the text: every device error, from whatever call, is then torch's own class with the standard
words before anybody can catch it, no function needs a wrapper, and nothing is spent where nothing is raised.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

from .._context import Context
from .._cuda_names import find
from .._patching import Patch, Surface, assign
from .._pending import compares_named_class, pending_traceback
from .._slots import ExceptionSlots
from ..failures import FlagosShimError

surface = Surface("exceptions")
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


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
    named = compares_named_class()

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        exc: BaseException = BaseException.__new__(cls, *args, **kwargs)
        if cls is RuntimeError and len(args) == 1 and args[0].__class__ is str:
            native_init(exc, *args)
            found = _translated(ctx, exc)
            traceback = pending_traceback() if named and found is not exc else None
            if traceback is not None:
                raise found.with_traceback(traceback)
            return found
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
        raw = found.__cause__
        native_init(self, *found.args)
        self.__dict__.update(found.__dict__)
        if raw is not None:
            self.__cause__ = BaseException.__new__(RuntimeError, *args) if raw is self else raw


@surface.replace("torch:OutOfMemoryError.__init__", optional=True)
@surface.replace("torch._C:_OutOfMemoryError.__init__", optional=True)  # its place before torch 2.4
@surface.replace("torch:AcceleratorError.__init__", optional=True)
@surface.replace("torch.distributed:DistBackendError.__init__", optional=True)
def in_place(ctx: Context, original: Any) -> Any:
    """Torch's own error class, raised by the plugin: the text begins with torch's words, and it has the attributes."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _adopt(ctx, original, self, *args, **kwargs)

    return __init__


@surface.discover
def runtime_result(ctx: Context) -> Iterator[Patch]:
    """What stands for `torch.cuda.CudaError` has the attributes where it is the vendor's, and can be copied."""

    def build(ctx: Context, original: Any) -> Any:
        native_init = RuntimeError.__init__

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if len(args) != 1 or args[0].__class__ is not str:  # a number; a text is that of a copy
                original(self, *args, **kwargs)
                args = self.args
            _adopt(ctx, native_init, self, *args)

        return functools.wraps(original)(__init__) if isinstance(original, types.FunctionType) else __init__

    theirs = find(ctx, "CudaError")
    if not isinstance(theirs, type) and ctx.shown_module is ctx.module:
        return  # torch.cuda is to be left as it is
    place = f"{theirs.__module__}:{theirs.__qualname__}" if isinstance(theirs, type) else "torch.cuda:CudaError"
    yield Patch(f"{place}.__init__", build, (runtime_result.__doc__ or "").strip(), "replace")


class ExceptHook:
    """What ``sys.excepthook`` names while the shim is active: as found, of a traceback that ends in the program."""

    def __init__(self, ctx: Context, original: Any) -> None:
        """Args: ctx: of the active back end; original: the hook found, the plugin's or Python's own."""
        self._original = original

        def excepthook(kind: Any, value: Any, traceback: Any) -> None:
            if ctx.active and isinstance(value, RuntimeError) and not isinstance(value, FlagosShimError):
                _end_in_the_program(traceback)
            original(kind, value, traceback)

        self._hook = excepthook

    def install(self) -> None:
        """Put the hook in."""
        assign(sys, "excepthook", self._hook)

    def covered(self) -> bool:
        """True where the program has set a hook of its own since."""
        return sys.excepthook is not self._hook

    def restore(self) -> None:
        """Put back what was found."""
        assign(sys, "excepthook", self._original)


surface.install("sys:excepthook")(ExceptHook)


def _end_in_the_program(traceback: Any) -> None:
    """Cut this package's frames off the end: a wrapper that called torch says nothing about the error."""
    last = None
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            last = traceback
        traceback = traceback.tb_next
    if last is not None:  # else all of it is this package's own
        last.tb_next = None
