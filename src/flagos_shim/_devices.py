"""The grammar of device names: which strings name the routed device, and what they become.

Pure functions and tables; this file imports no torch, so it can be tested and used without it.
"""

from __future__ import annotations

import re
from typing import Any, Callable

from .vendors import TAGS

# A whole device string and nothing else: "cuda", "cuda:3".  Paths, keys and other text never match.
_GRAMMAR = re.compile(r"(?P<kind>[a-z_]+)(?::(?P<index>0|[1-9][0-9]*))?", re.ASCII)

# The tag of a storage in a saved file: CUDA's, this package's, any vendor's, so that a file of any of them loads here.
_TAG = r"(?:cuda|flagos|{})(?::(\d+))?"

# torch reads an ordinal into 32 bits, and says so of a larger one.
_LARGEST = 2**31 - 1

# Interned names are kept, so a program that makes up device names without end must not fill the table without end.
_TABLE_LIMIT = 512


def parse(text: str, aliases: tuple[str, ...]) -> tuple[str, int | None] | None:
    """Split a device string whose kind is one of ``aliases``.

    Args:
        text: any string a program put where torch takes a device.
        aliases: the kinds to recognise, e.g. ``("cuda", "flagos")``.

    Returns:
        ``(kind, index or None)``, or None where ``text`` names another device or is no device string; torch's own
        parser then judges it and raises its own error.
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None or found["kind"] not in aliases:
        return None
    index = None if found["index"] is None else int(found["index"])
    return None if index is not None and index > _LARGEST else (found["kind"], index)


def tag_pattern(own: str) -> re.Pattern[str]:
    """What matches the device tag that any accelerator writes into a file; group 1 is the ordinal.

    Args:
        own: the device type in use, which may be a third party's.
    """
    return re.compile(_TAG.format("|".join(sorted({*TAGS, own} - {"cpu"}))))


class DeviceTable(dict[str, Any]):
    """From a device string to what torch is to be given for it; a miss is parsed once and remembered.

    A hit costs one dictionary look-up.  A string that names none of the aliases maps to itself, so a lookup never
    fails and never hides an error of torch's.  ``close()`` turns every entry into itself again: functions that still
    hold the table after ``deactivate()`` then behave as torch's own.
    """

    def __init__(self, aliases: tuple[str, ...], make: Callable[[int | None], Any]) -> None:
        """Args: aliases: kinds to route; make: builds the vendor's device from an index or None."""
        super().__init__()
        self.aliases = aliases
        self.made: dict[Any, Any] = {}
        self._make = make

    def keep(self, key: Any, device: Any) -> None:
        """Remember in ``made`` what constructing a device of ``key``, its arguments, gave."""
        aliases = self.aliases
        if len(self.made) < _TABLE_LIMIT:
            self.made[key] = device
            if self.aliases is not aliases:  # another thread has closed the table meanwhile
                self.made.pop(key, None)

    def __missing__(self, text: str) -> Any:
        aliases = self.aliases
        found = parse(text, aliases)
        value = text if found is None else self._make(found[1])
        if len(self) < _TABLE_LIMIT:
            self[text] = value
            if self.aliases is not aliases:  # another thread has closed the table meanwhile
                self.pop(text, None)
        return value

    def open(self, aliases: tuple[str, ...]) -> None:
        """Route again, after ``close``."""
        self.close()
        self.aliases = aliases

    def close(self) -> None:
        """Route nothing any more."""
        self.aliases = ()
        self.clear()
        self.made.clear()


class KindTable(dict[Any, str]):
    """From a ``torch.device`` to the plain name of its type: one look-up, where torch makes a new string each time."""

    def __init__(self, read: Callable[[Any], str]) -> None:
        """Args: read: torch's own getter of ``torch.device.type``."""
        super().__init__()
        self._read = read

    def __missing__(self, device: Any) -> str:
        kind = self._read(device)
        if len(self) < _TABLE_LIMIT:
            self[device] = kind
        return kind
