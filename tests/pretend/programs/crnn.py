"""Trains a small text recogniser (convolutions, recurrent cells, CTC) on the CPU and on the device: same losses.

Arguments: the device; cell and optimiser pairs such as ``LSTM:AdamW``, with an option of it as in ``GRU:Adam:foreach``.
"""

from __future__ import annotations

import importlib
import sys
import warnings

import torch
from torch import nn

D = sys.argv[1]
importlib.import_module(f"torch_{D}")
warnings.simplefilter("error")


class CRNN(nn.Module):
    def __init__(self, cell: str) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d((2, 1)),
        )
        self.rnn = getattr(nn, cell)(64, 16, bidirectional=True, num_layers=2)
        self.out = nn.Linear(32, 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return self.out(self.rnn(y.permute(3, 0, 1, 2).flatten(2))[0]).log_softmax(-1)


def losses(device: str, cell: str, optimizer: str, *options: str) -> list[float]:
    torch.manual_seed(0)
    model, x, labels = CRNN(cell), torch.randn(4, 1, 16, 32), torch.randint(1, 11, (4, 5))
    model.to(device)
    x, labels = x.to(device), labels.to(device)
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01, **dict.fromkeys(options, True))
    lengths, seen = (torch.full((4,), 16), torch.full((4,), 5)), []
    for _ in range(10):
        step.zero_grad()
        loss = nn.CTCLoss()(model(x), labels, *lengths)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        step.step()
        seen.append(loss.item())
    return seen


for case in sys.argv[2:]:
    here, there = losses("cpu", *case.split(":")), losses(D, *case.split(":"))
    assert here[-1] < here[0], case
    torch.testing.assert_close(torch.tensor(there), torch.tensor(here), rtol=1e-4, atol=1e-4)
print("OK")
