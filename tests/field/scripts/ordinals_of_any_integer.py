# Must hold: an ordinal may be an int, an IntEnum or a NumPy integer; a bool, a float or a list is refused.
import enum

import numpy as np
import torch


class Rank(enum.IntEnum):
    FIRST = 0


there = torch.ones(1, device="cuda").device
for n in (0, Rank.FIRST, np.int64(0), np.int32(0)):
    for t in (
        torch.zeros(1, device=n), torch.zeros(1).cuda(n), torch.zeros(1).to(n), torch.zeros(1).to(device=n),
        torch.nn.Linear(1, 1).to(n).weight, torch.nn.Linear(1, 1).cuda(n).weight, torch.tensor([1.0], device=n),
        torch.zeros(1).new_zeros(1, device=n), torch.zeros_like(torch.ones(1), device=n),
    ):
        assert t.device == there, (n, t.device)
    assert torch.device("cuda", n) == there
for bad in (lambda: torch.zeros(1, device=True), lambda: torch.zeros(1).cuda(1.0), lambda: torch.zeros(1).cuda([0]),
            lambda: torch.zeros(1, device=["cuda"]), lambda: torch.zeros(1).cuda("cpu")):
    try:
        bad()
    except (TypeError, ValueError, RuntimeError):
        continue
    if there.type != "cpu":
        raise AssertionError("taken for a device")
print("OK")
