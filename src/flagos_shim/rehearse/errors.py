"""The one exception of the rehearsal."""

from __future__ import annotations


class RehearsalError(RuntimeError):
    """A rehearsal that cannot start: the text names what is missing and the line that mends it."""
