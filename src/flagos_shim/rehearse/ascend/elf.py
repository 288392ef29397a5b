"""Reads the dynamic section of an ELF shared library: what it needs, what it defines, what it leaves undefined."""

from __future__ import annotations

import mmap
import pathlib
import struct
from typing import NamedTuple

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")
_DYNAMIC_SECTION, _SYMBOL_SECTION = 6, 11  # SHT_DYNAMIC, SHT_DYNSYM
_NEEDED = 1  # DT_NEEDED


class Dynamic(NamedTuple):
    """The dynamic linkage of one shared library, as names."""

    needed: frozenset[str]
    defined: frozenset[str]
    undefined: frozenset[str]


def read(file: pathlib.Path) -> Dynamic:
    """Return the dynamic linkage of ``file``.

    Raises ValueError where the file is not a 64-bit little-endian ELF file (x86-64 and aarch64 are).
    """
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{file} is not a 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        sections = [_SECTION.unpack_from(data, table + size * i) for i in range(count)]

        def text(strings: int, at: int) -> str:
            start = int(sections[strings][4]) + at
            return data[start : data.find(b"\0", start)].decode("utf-8", "replace")

        needed: set[str] = set()
        defined: set[str] = set()
        undefined: set[str] = set()
        for _, kind, _, _, offset, length, strings, *_ in sections:
            if kind == _DYNAMIC_SECTION:
                for tag, value in _DYNAMIC.iter_unpack(data[offset : offset + length]):
                    if tag == _NEEDED:
                        needed.add(text(strings, value))
            elif kind == _SYMBOL_SECTION:
                for name, _, _, section, _, _ in _SYMBOL.iter_unpack(data[offset : offset + length]):
                    if name:
                        (defined if section else undefined).add(text(strings, name))
    return Dynamic(frozenset(needed), frozenset(defined), frozenset(undefined))
