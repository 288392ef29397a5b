"""The OCR example: an ordinary CUDA script that trains on the CPU and, unmodified, on a rehearsed Ascend."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ..conftest import PRETEND

EXAMPLE = Path(__file__).parents[2] / "examples" / "ocr"
SCRIPT = str(EXAMPLE / "train.py")
PLAIN = [sys.executable, SCRIPT]
ASCEND = [sys.executable, "-m", "flagos_shim", "--rehearse", "ascend", SCRIPT]
AGREEMENT = 0.05  # points of accuracy between two devices for one checkpoint
# Enough to read about half of the strings: where two devices agree on 0 % or 100 %, that shows nothing.
HALF_TRAINED = ["--batch-size", "24", "--steps", "450"]
# Stands in for the script: Recogniser.forward runs out of memory above so many images.
SMALL_DEVICE = """
import runpy, sys
import torch
script, limit = sys.argv[1], int(sys.argv[2])
sys.argv = sys.argv[:1] + sys.argv[3:]
sys.path.insert(0, script.rpartition("/")[0])
import model
forward = model.Recogniser.forward
def small(self, images):
    if self.training and len(images) > limit:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    return forward(self, images)
model.Recogniser.forward = small
runpy.run_path(script, run_name="__main__")
"""


def run(
    command: list[str], *arguments: object, folder: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the example in a fresh interpreter; no back end is asked for but by ``command`` and ``variables``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLAGOS_")}
    environment["OMP_NUM_THREADS"] = "1"
    environment.update(variables or {})
    if "--rehearse" not in command and not variables:
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch as it is on a machine with no plugin
    return subprocess.run(
        [*command, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def metrics(
    command: list[str], *arguments: object, folder: Path, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run the example, which must succeed; return its metrics, with the summary line as ``summary``."""
    path = folder / "metrics.json"
    done = run(command, "--workers", 1, "--metrics", path, *arguments, folder=folder, variables=variables)
    assert done.returncode == 0, done.stderr
    values = json.loads(path.read_text())
    path.unlink()
    return {**values, "stdout": done.stdout, "summary": done.stdout.splitlines()[-1]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ocr")


@pytest.fixture(scope="module")
def on_cpu(folder: Path) -> dict[str, Any]:
    """A half-trained model from the CPU: cpu/last.pt, and cpu/step000435.pt on the way to it."""
    return metrics(PLAIN, *HALF_TRAINED, "--save-every", 435, "--out", folder / "cpu", folder=folder)


@pytest.fixture(scope="module")
def on_ascend(folder: Path, on_cpu: dict[str, Any]) -> dict[str, Any]:
    """The CPU's checkpoint of step 435, trained to the end on the rehearsed Ascend: ascend/last.pt."""
    resumed = ["--resume", folder / "cpu" / "step000435.pt", "--out", folder / "ascend"]
    return metrics(ASCEND, *HALF_TRAINED, *resumed, folder=folder)


def evaluated(command: list[str], checkpoint: Path) -> dict[str, Any]:
    return metrics(command, "--mode", "eval", "--checkpoint", checkpoint, folder=checkpoint.parent)


@pytest.mark.parametrize("name", ["train.py", "model.py", "synth.py"])
def test_its_text_knows_cuda_only(name: str) -> None:
    words = set(re.findall(r"[a-z]+", (EXAMPLE / name).read_text().lower()))
    devices = "npu mlu musa gcu xpu hpu mps hip rocm dcu"
    names = "flagos shim rehearse ascend huawei cann acl cambricon mthreads enflame intel"
    assert not words & {*devices.split(), *names.split()}
    assert name != "train.py" or "cuda" in words


def test_training_reduces_the_loss_and_reports_it(on_cpu: dict[str, Any], folder: Path) -> None:
    losses = on_cpu["losses"]
    assert len(losses) == 450
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])
    assert 5 < on_cpu["accuracy"] < 100
    assert on_cpu["accuracy"] < on_cpu["character_accuracy"] < 100
    assert re.fullmatch(r"accuracy \d+\.\d\d% \(target 98\.00%\) device cpu peak memory \d+\.\d MiB", on_cpu["summary"])


def test_a_resumed_run_repeats_the_uninterrupted_one(on_cpu: dict[str, Any], folder: Path) -> None:
    out = folder / "again"
    resumed = metrics(PLAIN, *HALF_TRAINED, "--resume", folder / "cpu" / "step000435.pt", "--out", out, folder=folder)
    assert resumed["first_step"] == 435
    assert resumed["losses"] == on_cpu["losses"][435:]
    assert (resumed["accuracy"], resumed["eval_loss"]) == (on_cpu["accuracy"], on_cpu["eval_loss"])


def test_the_seed_decides(folder: Path) -> None:
    short = ["--steps", 3, "--batch-size", 8, "--out", folder / "seeds"]
    first, again, other = (metrics(PLAIN, *short, "--seed", seed, folder=folder)["losses"] for seed in (1, 1, 2))
    assert first == again != other


def test_resuming_another_run_is_refused(on_cpu: dict[str, Any], folder: Path) -> None:
    done = run(PLAIN, "--resume", folder / "cpu" / "last.pt", "--batch-size", 24, "--steps", 9, folder=folder)
    assert done.returncode == 1
    assert "was made with steps 450, this run has steps 9" in done.stderr


def test_a_missed_target_is_the_exit_code(on_cpu: dict[str, Any], folder: Path) -> None:
    done = run(PLAIN, "--mode", "eval", "--checkpoint", folder / "cpu" / "last.pt", "--target", 99.9, folder=folder)
    assert done.returncode == 1, done.stderr
    assert f"accuracy {on_cpu['accuracy']:.2f}% (target 99.90%) device cpu" in done.stdout


def test_out_of_memory_halves_the_batch(folder: Path) -> None:
    command = [sys.executable, "-c", SMALL_DEVICE, SCRIPT, "8"]
    small = metrics(command, "--steps", 2, "--batch-size", 32, "--out", folder / "small", folder=folder)
    assert small["chunk"] == 8
    assert len(small["losses"]) == 2 and all(map(math.isfinite, small["losses"]))
    lines = [line for line in small["stdout"].splitlines() if line.startswith("out of memory")]
    assert lines == [
        "out of memory with 32 images at a time, trying 16",
        "out of memory with 16 images at a time, trying 8",
    ]


def test_out_of_memory_with_one_image_ends_the_run(folder: Path) -> None:
    command = [sys.executable, "-c", SMALL_DEVICE, SCRIPT, "0"]
    done = run(command, "--steps", 1, "--batch-size", 4, "--workers", 0, folder=folder)
    assert done.returncode == 1
    assert "OutOfMemoryError: CUDA out of memory" in done.stderr


def test_a_small_chip_really_runs_out_and_the_run_goes_on(folder: Path) -> None:
    command = [*ASCEND[:-1], "--rehearse-memory-mb", "56", SCRIPT]
    small = metrics(command, "--steps", 2, "--batch-size", 128, "--out", folder / "chip", folder=folder)
    assert small["device"] == "npu:0"
    assert 1 <= small["chunk"] < 128
    assert 0 < small["peak_memory_bytes"] <= 56 << 20
    assert "out of memory with 128 images at a time, trying 64" in small["stdout"]


def test_a_checkpoint_of_the_cpu_is_as_accurate_on_ascend(on_cpu: dict[str, Any], folder: Path) -> None:
    here, there = (evaluated(command, folder / "cpu" / "last.pt") for command in (PLAIN, ASCEND))
    assert (here["device"], there["device"]) == ("cpu", "npu:0")
    assert here["accuracy"] == on_cpu["accuracy"] > 5
    assert abs(here["accuracy"] - there["accuracy"]) < AGREEMENT
    assert there["eval_loss"] == pytest.approx(here["eval_loss"], rel=1e-4)
    assert there["peak_memory_bytes"] > 0


def test_a_checkpoint_of_ascend_is_as_accurate_on_the_cpu(on_ascend: dict[str, Any], folder: Path) -> None:
    assert (on_ascend["device"], on_ascend["first_step"], len(on_ascend["losses"])) == ("npu:0", 435, 15)
    here = evaluated(PLAIN, folder / "ascend" / "last.pt")
    assert here["device"] == "cpu"
    assert abs(here["accuracy"] - on_ascend["accuracy"]) < AGREEMENT
    assert here["eval_loss"] == pytest.approx(on_ascend["eval_loss"], rel=1e-4)
    assert here["accuracy"] > 5


def test_one_variable_switches_the_back_end(on_cpu: dict[str, Any], folder: Path) -> None:
    """One command, one checkpoint, one environment: nothing but FLAGOS_DEVICE_BACKEND changes."""
    environment = {"FLAGOS_SHIM_REHEARSE": "ascend", "PYTHONPATH": str(PRETEND)}
    checkpoint = folder / "cpu" / "last.pt"
    found = {}
    for backend, device in (("ascend", "npu:0"), ("mlu", "mlu:0"), ("cpu", "cpu")):
        found[backend] = metrics(
            PLAIN, "--mode", "eval", "--checkpoint", checkpoint, folder=folder,
            variables={**environment, "FLAGOS_DEVICE_BACKEND": backend},
        )  # fmt: skip
        assert found[backend]["device"] == device
    accuracies = [values["accuracy"] for values in found.values()]
    assert max(accuracies) - min(accuracies) < AGREEMENT and min(accuracies) > 5
    assert abs(accuracies[0] - on_cpu["accuracy"]) < AGREEMENT
    assert found["ascend"]["peak_memory_bytes"] > 0 and found["mlu"]["peak_memory_bytes"] > 0
