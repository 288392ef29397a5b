"""Writes what a command has to say, whatever the terminal can show and whether or not somebody reads to the end."""

from __future__ import annotations

import os
import sys


def can_show(text: str) -> bool:
    """True where the encoding of standard output has all of ``text``."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def write(text: str) -> None:
    """Print ``text`` and a newline; what the encoding does not have becomes an escape such as ``\\u2026``.

    Where the reader has gone (``| head -1``), the rest is dropped without a word, as other commands do.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        # Python flushes once more at its end, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
