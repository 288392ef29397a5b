"""Feeds the NPU from a loader with two workers, started after the device is up, by the method named."""

import sys

import torch
import torch_npu  # noqa: F401
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    """The numbers 0 to 11, three times each."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((3,), float(index)), index


if __name__ == "__main__":
    total = torch.zeros(3, device="npu")
    options = {"num_workers": 2, "pin_memory": True, "persistent_workers": True}
    loader = DataLoader(Numbers(), batch_size=4, multiprocessing_context=sys.argv[1], **options)
    for _ in range(2):
        for x, _index in loader:
            assert x.is_pinned()
            total += x.to("npu", non_blocking=True).sum(0)
    print(total.tolist())
