"""Operators that the vendor lacks and the plugin computes on the CPU: logged and counted.

A plugin says so by a warning, once an operator.  Where that reaches Python and is not ignored by the program's filters
it is heard here; torch_npu 2.13 writes its own to stderr from C++ instead, for everybody to see.  FLAGOS_LOG_FALLBACK,
which torch_fl has too, raises what is heard to a level that is shown.  Strict mode is the plugin's own switch, set at
activation.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from .. import _settings
from .._context import Context
from .._patching import Surface

surface = Surface("fallback")


@surface.wrap("warnings:_showwarnmsg")
def heard(ctx: Context, original: Any) -> Any:
    """A plugin's warning of an operator on the CPU is counted, and logged at DEBUG (WARNING where asked for)."""
    if ctx.vendor.fallback is None:
        return original
    pattern = re.compile(ctx.vendor.fallback)
    level = logging.WARNING if _settings.LOG_FALLBACK.read() else logging.DEBUG

    def _showwarnmsg(msg: Any) -> None:
        if ctx.active:
            found = pattern.search(str(msg.message))
            if found is not None:
                name = found[1]
                ctx.fallbacks[name] = ctx.fallbacks.get(name, 0) + 1
                index = ctx.module.current_device()
                ctx.log.log(level, "Falling back to CPU for %s on %s:%s", name, ctx.device_type, index)
        original(msg)

    return _showwarnmsg
