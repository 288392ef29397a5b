"""A CUDA program that a launcher starts as several ranks; each prints one line."""

from __future__ import annotations

import os
import sys

import torch

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
device = torch.zeros(1, device="cuda").device
sys.stdout.write(f"rank {rank} of {os.environ['WORLD_SIZE']} on {device} {__name__} {sys.argv[1:]}\n")
