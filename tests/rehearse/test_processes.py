"""Several processes: ranks over HCCL, workers of a loader, and what a process leaves behind."""

from __future__ import annotations

import os

import pytest

from .conftest import Run


@pytest.mark.parametrize("scenario", ["collectives", "training", "failing"])
def test_two_ranks(run: Run, scenario: str) -> None:
    before = set(os.listdir("/dev/shm"))
    out = run("ranks.py", scenario, FLAGOS_SHIM_REHEARSE_HCCL_TIMEOUT="60").stdout
    assert sorted(line for line in out.splitlines() if line.endswith("ok")) == [
        f"{scenario} on rank 0: ok",
        f"{scenario} on rank 1: ok",
    ]
    assert "exit codes [0, 0]" in out
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "flagos_rehearse" in name]


def test_a_peer_that_dies_is_an_error_and_not_a_hang(run: Run) -> None:
    out = run("ranks.py", "dying", FLAGOS_SHIM_REHEARSE_HCCL_TIMEOUT="3").stdout
    assert "dying on rank 0: ok" in out and "exit codes [0, 7]" in out


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loader_workers_after_the_device_is_up(run: Run, tmp_path: object, method: str) -> None:
    code = """
        import sys, pathlib
        pathlib.Path(sys.argv[1], "script.py").write_text('''
import sys, torch, torch_npu
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return torch.full((3,), float(index)), index

if __name__ == "__main__":
    total = torch.zeros(3, device="npu")
    options = dict(batch_size=4, num_workers=2, pin_memory=True, persistent_workers=True)
    loader = DataLoader(Numbers(), multiprocessing_context=sys.argv[1], **options)
    for _ in range(2):
        for x, _index in loader:
            assert x.is_pinned()
            total += x.to("npu", non_blocking=True).sum(0)
    print(total.tolist())
''')
        import subprocess
        sys.exit(subprocess.run([sys.executable, sys.argv[1] + "/script.py", sys.argv[2]]).returncode)
    """
    assert run(code, str(tmp_path), method).stdout.strip() == "[132.0, 132.0, 132.0]"


def test_a_forked_child_may_not_use_the_device(run: Run) -> None:
    code = """
        import os, torch, torch_npu
        torch.ones(1, device="npu")
        child = os.fork()
        if child == 0:
            try:
                torch.ones(1, device="npu")
            except RuntimeError as error:
                os._exit(5 if "Cannot re-initialize NPU in forked subprocess" in str(error) else 6)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(code).stdout.strip() == "5"


@pytest.mark.parametrize(("ending", "status"), [("", 0), ("sys.exit(4)", 4), ("raise ValueError('mine')", 1)])
def test_exit_codes_are_the_programs(run: Run, ending: str, status: int) -> None:
    done = run(f"import sys, torch, torch_npu\ntorch.ones(2, device='npu').sum().item()\n{ending}", status=status)
    assert ("ValueError: mine" in done.stderr) == (status == 1)
