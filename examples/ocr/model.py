"""The recogniser: convolutions, a bidirectional LSTM over the columns of the image, and a CTC head."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from synth import ALPHABET, BLANK, HEIGHT
from torch import nn


def _convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Recogniser(nn.Module):
    """Images of B x 1 x HEIGHT x W to float32 log probabilities of T x B x (characters + blank), T = W / 4."""

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.features = nn.Sequential(
            _convolution(1, 16, stride=2),
            _convolution(16, 32),
            nn.MaxPool2d((2, 2)),
            _convolution(32, 64),
            nn.MaxPool2d((2, 1)),  # columns are the time steps of the LSTM: only rows are halved here
        )
        self.dropout = nn.Dropout(0.1)
        self.sequence = nn.LSTM(64 * HEIGHT // 8, hidden, bidirectional=True)
        self.head = nn.Linear(2 * hidden, len(ALPHABET) + 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        columns = self.features(images).flatten(1, 2).permute(2, 0, 1)  # T x B x (channels * rows)
        states, _ = self.sequence(self.dropout(columns))
        return F.log_softmax(self.head(states).float(), dim=2)


def ctc_loss(log_probabilities: torch.Tensor, targets: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The CTC loss summed over the batch; every image uses all T time steps."""
    steps, count, _ = log_probabilities.shape
    input_lengths = torch.full((count,), steps, dtype=torch.long, device=log_probabilities.device)
    return F.ctc_loss(
        log_probabilities, targets, input_lengths, lengths, blank=BLANK, reduction="sum", zero_infinity=True
    )


def decode(log_probabilities: torch.Tensor) -> list[list[int]]:
    """The best path of each image as classes: repeats merged, blanks dropped."""
    best = log_probabilities.argmax(dim=2).t().cpu()
    results = []
    for path in best:
        merged = torch.unique_consecutive(path)
        results.append(merged[merged != BLANK].tolist())
    return results
