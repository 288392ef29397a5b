"""CPython 3.9 and 3.10 hold an ``except`` clause against the class that C code named, not against what that made.

C code raises by name (``PyErr_SetString(RuntimeError, text)``); the exception is made when Python hands it to the first
handler on its way.  If the named class makes one of another class, that first handler still sees the named one.  An
error that is raised while the exception is being made takes its place, and is compared by its own class.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from types import TracebackType
from typing import Any


def compares_named_class() -> bool:
    """Whether this interpreter does so; asked of it by raising an exception in this way."""

    class Named(Exception):
        def __new__(cls, *args: Any) -> Any:
            return Exception.__new__(Made, *args)

    class Made(Named):
        pass

    try:
        ctypes.pythonapi.PyErr_SetString(ctypes.py_object(Named), b"")
    except Made:
        return False
    except Named:
        pass
    return True


def pending_traceback() -> TracebackType | None:
    """The traceback of the exception that Python is making for a handler in the frame two above this one.

    None where there is no such frame or no such traceback, as where a program makes an exception by calling its class.
    """
    try:
        frame = sys._getframe(2)
    except ValueError:
        return None
    for generation in range(3):  # it is among the youngest objects, unless they have just been collected
        for found in reversed(gc.get_objects(generation)):
            if type(found) is TracebackType and found.tb_frame is frame:
                # An older exception of the same line has its traceback still.
                taken = any(isinstance(holder, BaseException) for holder in gc.get_referrers(found))
                return found if found.tb_lasti == frame.f_lasti and not taken else None
    return None
