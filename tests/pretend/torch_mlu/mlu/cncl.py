"""What ``torch.mlu.cncl`` has, which is little: torch.cuda.nccl's collectives are lacking (surface.json)."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


def is_cncl_available() -> bool:
    """Whether the collectives can be used."""
    return True


def version() -> tuple[int, int, int]:
    """Release of the collectives library."""
    return (1, 20, 0)


def batch_isend_irecv(p2p_op_list: list[Any]) -> list[Any]:
    """torch.distributed's function of that name."""
    return dist.batch_isend_irecv(p2p_op_list)
