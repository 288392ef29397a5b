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
def test_loader_workers_after_the_device_is_up(run: Run, method: str) -> None:
    assert run("loader.py", method).stdout.strip() == "[132.0, 132.0, 132.0]"


@pytest.mark.parametrize(("ending", "status"), [("", 0), ("sys.exit(4)", 4), ("raise ValueError('mine')", 1)])
def test_exit_codes_are_the_programs(run: Run, ending: str, status: int) -> None:
    done = run(f"import sys, torch, torch_npu\ntorch.ones(2, device='npu').sum().item()\n{ending}", status=status)
    assert ("ValueError: mine" in done.stderr) == (status == 1)
