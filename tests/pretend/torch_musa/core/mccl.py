"""``torch.musa.mccl`` (core/mccl.py)."""
from __future__ import annotations

from typing import Tuple


def version() -> Tuple[int, int, int]:
    """Release of the collectives library."""
    return (2, 11, 4)
