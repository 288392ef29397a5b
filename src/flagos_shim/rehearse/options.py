"""What a rehearsal can be told, in one table: the launcher makes its ``--rehearse-*`` options from it.

The C runtime and the operators read the variables themselves; here they are named, described and checked.
"""

from __future__ import annotations

import os
import re

from .errors import RehearsalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX = "FLAGOS_SHIM_REHEARSE"
FORCE = f"{PREFIX}_FORCE"
UNSUPPORTED = f"{PREFIX}_UNSUPPORTED"
FAIL = f"{PREFIX}_FAIL"
CHIPS = (
    *("Ascend910A", "Ascend910B", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA"),
    *("Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B3", "Ascend910B4", "Ascend910B4-1"),
    *("Ascend910_9391", "Ascend910_9392", "Ascend910_9381", "Ascend910_9382", "Ascend910_9372", "Ascend910_9362"),
    *("Ascend310P1", "Ascend310P3"),
)
_FAILURE = re.compile(r"\s*[A-Za-z_]\w*(\.\w+)?:\d+(@[1-9]\d*\+?)?\s*")
_FUNCTION = re.compile(r"acl(?!nn$)|Hccl")  # ACL and HCCL functions; every other name is an operator's
_OPERATOR = re.compile(r"\s*[A-Za-z_]\w*(\.\w+)?\s*")


def _whole(least: int, most: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.strip().isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return text.strip()

    return parse


def _seconds(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise ValueError("a number of seconds above 0")
    return text.strip()


def _chip(text: str) -> str:
    if text not in CHIPS:
        raise ValueError(f"one of {', '.join(CHIPS)}")
    return text


def _failures(text: str) -> str:
    if not all(_FAILURE.fullmatch(entry) for entry in text.split(",")):
        raise ValueError("a comma-separated list of NAME:CODE, NAME:CODE@N or NAME:CODE@N+, as aclrtMalloc:207001@3")
    return text


def _operators(text: str) -> str:
    if not all(_OPERATOR.fullmatch(entry) for entry in text.split(",")):
        raise ValueError("a comma-separated list of aten operator names, such as softmax,_softmax")
    return text


class Option:
    """One thing that a rehearsal can be told.

    ``flag`` is the launcher's option (``--rehearse-devices``), ``variable`` the environment variable behind it,
    ``default`` what holds without it (as text), ``meaning`` one line for ``--help``. ``parse(text)`` returns the text
    to put in the variable and raises ValueError, whose message says what was expected.
    """

    __slots__ = ("default", "flag", "meaning", "parse", "variable")

    def __init__(self, name: str, default: str, meaning: str, parse: Callable[[str], str]) -> None:
        self.flag = f"--rehearse-{name}"
        self.variable = f"{PREFIX}_{name.upper().replace('-', '_')}"
        self.default = default
        self.meaning = meaning
        self.parse = parse


OPTIONS = (
    Option("devices", "2", "number of chips in the machine", _whole(0, 64)),
    Option("memory-mb", "1024", "memory of each chip in MiB, counted for each process", _whole(4, 1 << 20)),
    Option("chip", "Ascend910B1", "name of the chip, as CANN spells it", _chip),
    Option("fail", "", "calls that fail: NAME:CODE[@N[+]],... (ACL or HCCL function, aten operator, aclnn)", _failures),
    Option("unsupported", "", "aten operators that the chip's library shall lack, separated by commas", _operators),
    Option("hccl-timeout", "60", "seconds that a rank waits for its peers before it fails", _seconds),
)


def check(environ: Mapping[str, str]) -> None:
    """Raise RehearsalError for the first option whose value in ``environ`` cannot be used; unset and empty are fine."""
    for option in OPTIONS:
        text = environ.get(option.variable, "")
        if not text:
            continue
        try:
            option.parse(text)
        except ValueError as expected:
            raise RehearsalError(
                f"{option.variable}={text!r} is not usable: expected {expected}. "
                f"What it sets: {option.meaning}; unset, it is {option.default or 'empty'}."
            ) from None


def entries(environ: Mapping[str, str], variable: str) -> list[str]:
    """Return the non-empty entries of the comma-separated ``variable``."""
    return [entry.strip() for entry in environ.get(variable, "").split(",") if entry.strip()]


def operators_fail(environ: Mapping[str, str]) -> bool:
    """Return whether FLAGOS_SHIM_REHEARSE_FAIL names operators, beside functions of the runtime."""
    return any(not _FUNCTION.match(entry.partition(":")[0]) for entry in entries(environ, FAIL))


def cache_folder(environ: Mapping[str, str]) -> str:
    """Return the folder that this package may keep built files in: FLAGOS_SHIM_CACHE, else the user's cache folder."""
    chosen = environ.get("FLAGOS_SHIM_CACHE")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    return os.path.join(environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "flagos_shim")
