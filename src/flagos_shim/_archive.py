"""TorchScript archives: rename the devices that a saved module mentions, and nothing else in it.

An archive is a zip: pickles (``data.pkl``, ``constants.pkl``), source (``code/*.py``) and raw tensor data.  Devices
stand in the pickles as the location of a storage and as ``torch.device`` values, in the source as literals.  This file
imports no torch.
"""

from __future__ import annotations

import io
import pickletools
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

Rename = Callable[[str], str]

_ALIGNMENT = 64  # torch aligns records, so that they can be mapped into memory
_IN_CODE = re.compile(r'torch\.device\("([a-z0-9_]+(?::[0-9]+)?)"\)')
_DEFAULT_IN_CODE = re.compile(r'(?<=: Device=)torch\.device\("([a-z0-9_]+(?::[0-9]+)?)"\)')
_STRINGS = ("BINUNICODE", "SHORT_BINUNICODE", "UNICODE")
_GETS = ("BINGET", "LONG_BINGET", "GET")
_PUTS = ("BINPUT", "LONG_BINPUT", "PUT")


def rename_in_pickle(data: bytes, rename: Rename, storages: Rename | bool = True) -> bytes:
    """Rename the devices in a pickle that torch's C++ wrote.

    Args:
        data: the pickle.
        rename: from a device string to the new one.
        storages: also rename where tensors are stored, or how to; otherwise only ``torch.device`` values.
    """
    place = storages if callable(storages) else rename if storages else None
    ops = list(pickletools.genops(data))
    ends = [position for _, _, position in ops[1:]] + [len(data)]
    out = bytearray()
    found: dict[Any, Any] = {}  # memo as it was read
    given: dict[Any, Any] = {}  # memo as it is written
    marks: list[list[Any]] = []  # the values since each open MARK
    last: Any = None
    last_given: Any = None
    before_mark: Any = None
    for (op, argument, start), end in zip(ops, ends):
        piece = data[start:end]
        if op.name in _PUTS:
            found[argument], given[argument] = last, last_given
            out += piece
            continue
        value: Any = None
        if op.name in _STRINGS:
            value = argument
        elif op.name in _GETS:
            value = found.get(argument)
        elif op.name == "GLOBAL":
            value = (argument,)
        wanted = value
        if isinstance(value, str):
            stored = bool(marks) and len(marks[-1]) == 3 and marks[-1][0] == "storage"
            built = last == ("torch device",) or (bool(marks) and marks[-1] == [] and before_mark == ("torch device",))
            if stored and place is not None:
                wanted = place(value)
            elif built and not stored:
                wanted = rename(value)
            if wanted != (given.get(argument) if op.name in _GETS else value):
                text = wanted.encode()
                piece = b"X" + struct.pack("<I", len(text)) + text
        out += piece
        if op.name == "MARK":
            before_mark = last
            marks.append([])
        elif op.name in ("TUPLE", "LIST", "DICT", "SETITEMS", "APPENDS") and marks:
            marks.pop()
            if marks:
                marks[-1].append(None)
        elif marks and op.stack_after:
            marks[-1].append(value)
        last, last_given = value, wanted
    return bytes(out)


def rename_devices(source: str | BinaryIO, rename: Rename, *, storages: Rename | bool, code: bool) -> bytes | None:
    """Read an archive and return it with its devices renamed, or None where there is nothing to rename.

    Args:
        source: path, or file object that can seek.
        rename: from a device string to the new one.
        storages: also rename where tensors are stored, or how to.
        code: rename every device in the source, not only default arguments.
    """
    with zipfile.ZipFile(source) as archive:
        changed = {}
        for name in archive.namelist():
            if name.endswith((".pkl", ".py")):
                data = archive.read(name)
                new = (
                    rename_in_pickle(data, rename, storages)
                    if name.endswith(".pkl")
                    else _rename_in_code(data.decode(), rename, _IN_CODE if code else _DEFAULT_IN_CODE).encode()
                )
                if new != data:
                    changed[name] = new
        return _rewrite(archive, changed) if changed else None


def _rename_in_code(text: str, rename: Rename, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda found: f'torch.device("{rename(found[1])}")', text)


def _rewrite(archive: zipfile.ZipFile, changed: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
        for name in archive.namelist():
            entry = zipfile.ZipInfo(name)
            start = buffer.tell() + 30 + len(name.encode()) + 4
            padding = -start % _ALIGNMENT
            entry.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
            out.writestr(entry, changed[name] if name in changed else archive.read(name))
    return buffer.getvalue()
