"""The one exception of the rehearsal."""

from __future__ import annotations

from ..failures import FlagosShimError


class RehearsalError(FlagosShimError):
    """A rehearsal that cannot start: the text names what is missing and the line that mends it."""
