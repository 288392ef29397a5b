"""``torch.musa.mccl`` (core/mccl.py)."""

from __future__ import annotations


def version() -> tuple[int, int, int]:
    """Release of the collectives library."""
    return (2, 11, 4)
