"""What a program starts is switched on like the program, whatever way it came to be switched on itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

INSIDE = Path(__file__).parent / "inside"
WORDS = ["cuda:0", "cuda:0"]
VALUES = [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]
DEVICE = {"ascend": "npu:0", "cpu": "cpu"}
# By the variable, by the launcher, by a line in the program.
WAYS = {
    ("ascend", "variable"): {"backend": "ascend"},
    ("cpu", "launcher"): {"backend": None, "flags": ["-m", "flagos_shim", "--backend", "cpu"]},
}


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def seen(request: pytest.FixtureRequest, run_isolated: Any) -> Any:
    """What the children of one program saw, with the device that they should."""
    done = run_isolated(INSIDE / "children.py", **WAYS[request.param])
    return done.json, DEVICE[request.param[0]]


def test_the_program_itself(seen: Any) -> None:
    found, device = seen
    assert found["parent"] == device and found["after use"][0] == device


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process(seen: Any, method: str) -> None:
    found, device = seen
    module = "__main__" if method == "fork" else "__mp_main__"
    assert found[method] == [device, device, module, True, 0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader(seen: Any, method: str) -> None:
    found, device = seen
    assert found[f"{method} loader"] == [[device], WORDS, VALUES]


def test_workers_after_the_device_was_used(seen: Any) -> None:
    found, device = seen
    assert found["after use"][1] == [[device], WORDS, VALUES]


def test_another_interpreter(seen: Any) -> None:
    found, device = seen
    assert found["executable"] == device


@pytest.mark.parametrize(
    ("flags", "device"),
    [
        (["-m", "torch.distributed.run", "--nproc_per_node", "2", str(INSIDE / "ranks.py"), "a"], "npu:{}"),
        (
            [
                "-m",
                "torch.distributed.run",
                "--nproc_per_node",
                "2",
                "-m",
                "flagos_shim",
                str(INSIDE / "ranks.py"),
                "a",
            ],
            "npu:{}",
        ),
    ],
    ids=["torchrun", "torchrun -m flagos_shim"],
)
def test_ranks(run_isolated: Any, flags: list[str], device: str) -> None:
    done = run_isolated(None, flags=flags, env={"PYTORCH_ALLOC_CONF": None})
    lines = sorted(line for line in done.ok().stdout.splitlines() if line.startswith("rank"))
    assert lines == [f"rank {rank} of 2 on {device.format(rank)} __main__ ['a']" for rank in range(2)]


def test_a_program_that_switches_on_by_itself_tells_its_children(run_isolated: Any) -> None:
    code = """
import flagos_shim, subprocess, sys
flagos_shim.activate("cpu")
child = [sys.executable, "-c", "import torch; print(torch.device('cuda'))"]
print(subprocess.run(child, stdout=-1, text=True).stdout.strip())
flagos_shim.deactivate()
print(subprocess.run(child, stdout=-1, text=True).stdout.strip())
"""
    done = run_isolated(code, backend=None, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert done.ok().stdout == "cpu\ncuda\n"


def test_each_child_may_be_given_its_own_card(run_isolated: Any) -> None:
    code = """
import os, subprocess, sys, torch
assert torch.cuda.device_count() == 2
code = "import os, torch; print(torch.cuda.device_count(), os.environ['ASCEND_RT_VISIBLE_DEVICES'])"
child = [sys.executable, "-c", code]
for cards in ("1", "0,1"):
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": cards}
    print(subprocess.run(child, stdout=-1, text=True, env=environ).stdout.strip())
"""
    done = run_isolated(code, env={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert done.ok().stdout == "1 1\n2 0,1\n"
