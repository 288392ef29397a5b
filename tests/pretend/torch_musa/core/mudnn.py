"""``torch.backends.mudnn``: cuDNN's switches under the vendor's name (core/mudnn.py)."""

from __future__ import annotations

allow_tf32 = True
enabled = True
benchmark = False
deterministic = False


def is_available() -> bool:
    """Whether the operator library is there."""
    return True


def version() -> int:
    """Release of the operator library, as one number."""
    return 2800
