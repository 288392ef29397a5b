"""A CUDA program with children of every kind.  It names only `cuda`, and prints what each child saw as JSON."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):  # type: ignore[type-arg]
    """Says in which worker, and on which device, each item was made."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return {"device": str(torch.device("cuda", 0)), "text": "cuda:0", "value": torch.full((2,), index)}


class Message:
    """A class of the program's own, which children must find."""

    def __init__(self, device: torch.device) -> None:
        self.device = device


def report(queue: Any, message: Message) -> None:
    """What a child says: its own device, and the one that it was sent."""
    made = torch.zeros(1, device="cuda") if torch.cuda.is_available() else None
    queue.put([str(torch.device("cuda", 0)), str(message.device), type(message).__module__, made is not None])


def started(method: str) -> Any:
    """The report of a child that was started by one method."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=report, args=(queue, Message(torch.device("cuda:0"))))
    child.start()
    answer = queue.get(timeout=120)
    child.join(60)
    return [*answer, child.exitcode]


def loaded(method: str) -> Any:
    """What a loader's workers made."""
    loader = DataLoader(Words(), batch_size=2, num_workers=1, multiprocessing_context=method)
    batches = list(loader)
    return [
        sorted({d for b in batches for d in b["device"]}),
        batches[0]["text"],
        [b["value"].tolist() for b in batches],
    ]


if __name__ == "__main__":
    seen: dict[str, Any] = {"parent": str(torch.device("cuda", 0))}
    # Before the parent has used its device: afterwards torch itself forbids it in a forked child.
    seen["fork"] = started("fork")
    seen["fork loader"] = loaded("fork")
    code = "import torch; print(torch.zeros(1, device='cuda').device)"
    seen["executable"] = subprocess.run([sys.executable, "-c", code], stdout=-1, text=True, check=True).stdout.strip()
    seen["spawn"] = started("spawn")
    seen["spawn loader"] = loaded("spawn")
    x = torch.ones(2).cuda()
    seen["after use"] = [str((x + 1).device), loaded("fork")]
    print(json.dumps(seen))
