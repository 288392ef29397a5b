"""Whether mixed precision can be had."""

from __future__ import annotations

from .._device import is_available


def amp_definitely_not_available() -> bool:
    """True where there is no device."""
    return not is_available()
