"""The environment variables that activation reads, in one table; a rehearsal has its own (`rehearse.options`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from . import rehearse
from .failures import FlagosShimError
from .vendor import Vendor

# The spellings that torch_fl, the FlagOS plugin, takes for "off"; everything else that is set means "on".
_OFF = ("0", "", "off", "OFF", "false", "FALSE", "False")


# torch holds a size in 64 bits with a sign.
_LARGEST_SIZE = 2**63 - 1


def _text(value: str) -> str | None:
    return value.strip() or None  # set to nothing is as good as unset


def _switch(value: str) -> bool:
    return value.strip() not in _OFF


def _bytes(value: str) -> int | None:
    text = value.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or not text.strip("0"):
        raise ValueError("expected a number of bytes, e.g. 1073741824")
    # Python refuses to read a number of thousands of digits, in its own words.
    if len(text) > len(str(_LARGEST_SIZE)) or int(text) > _LARGEST_SIZE:
        raise ValueError(f"expected a number of bytes that torch can hold, {_LARGEST_SIZE} at most")
    return int(text)


def _level(value: str) -> str | None:
    level = value.strip().upper()
    if not level:
        return None
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise ValueError("expected DEBUG, INFO, WARNING, ERROR or CRITICAL")
    return level


@dataclass(frozen=True)
class Setting:
    """One variable: its name, what it means, what holds when it is unset, how its text is read, and its other names."""

    name: str
    meaning: str
    default: Any
    parse: Callable[[str], Any]
    aliases: tuple[str, ...] = ()

    def read(self, environ: Mapping[str, str] | None = None) -> Any:
        """The value in force.

        Raises:
            FlagosShimError: the text cannot be read; the message names the variable, the text and what was expected.
        """
        environ = os.environ if environ is None else environ
        name = next((name for name in (self.name, *self.aliases) if name in environ), None)
        if name is None:
            return self.default
        text = environ[name]
        try:
            return self.parse(text)
        except ValueError as error:
            raise FlagosShimError(f"{name}={text!r} cannot be read: {error}. Correct it or unset it.") from error


BACKEND = Setting(
    "FLAGOS_DEVICE_BACKEND", "The back end that `cuda` and `flagos` mean; `auto` detects it.", None, _text
)
LOG_LEVEL = Setting("FLAGOS_LOG_LEVEL", "Level of the logger `flagos_shim`.", None, _level)
ALIAS_CUDA = Setting(
    "FLAGOS_ALIAS_CUDA", "0 leaves the name `cuda` failing loudly; `flagos` still works.", True, _switch
)
DISABLE_CUDA_SHIM = Setting(
    "FLAGOS_DISABLE_CUDA_SHIM",
    "1 leaves the module `torch.cuda` as it is; device names are still routed.",
    False,
    _switch,
)
REHEARSE = Setting(
    "FLAGOS_SHIM_REHEARSE", f"Run a vendor's real plugin on host memory: {', '.join(rehearse.KNOWN)}.", None, _text
)
LOG_FALLBACK = Setting(
    "FLAGOS_LOG_FALLBACK", "1 logs each operator that runs on the CPU at WARNING instead of DEBUG.", False, _switch
)
STRICT = Setting("FLAGOS_SHIM_STRICT", "1 makes an operator that would run on the CPU an error.", False, _switch)


def _spelled(vendor: Vendor, kind: str) -> tuple[str, ...]:
    return tuple(f"FLAGOS_{name.upper()}_{kind}" for name in vendor.names)


def pool_size(vendor: Vendor) -> Setting:
    """``FLAGOS_<VENDOR>_POOL_SIZE``, e.g. FLAGOS_ACME_POOL_SIZE for the vendor ``acme``, or with one of its aliases."""
    name, *others = _spelled(vendor, "POOL_SIZE")
    meaning = "Bytes that the caching allocator reserves when the device starts."
    return Setting(name, meaning, None, _bytes, tuple(others))


def fused(vendor: Vendor, switch: str) -> Setting:
    """``FLAGOS_<VENDOR>_<SWITCH>``, for a key of the vendor's field ``fused``, or with one of its aliases."""
    name, *others = _spelled(vendor, switch)
    function = vendor.fused[switch].targets[0].replace(":", ".")
    meaning = f"1 sends {function} to the plugin's fused operator where it applies."
    return Setting(name, meaning, False, _switch, tuple(others))


def of_vendor(vendor: Vendor) -> tuple[Setting, ...]:
    """The settings whose names have the vendor's in them."""
    return (pool_size(vendor), *(fused(vendor, switch) for switch in vendor.fused))


SETTINGS = (BACKEND, LOG_LEVEL, ALIAS_CUDA, DISABLE_CUDA_SHIM, REHEARSE, LOG_FALLBACK, STRICT)
