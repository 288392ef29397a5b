"""The pretend device itself (``tests/pretend``), without flagos_shim: what the contract suites over it stand on.

Each check runs in a fresh interpreter that imports a vendor's package, as a program on that vendor's machine would; the
checks are in ``tests/pretend/programs``.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PRETEND = Path(__file__).resolve().parent.parent / "pretend"
BOTH = pytest.mark.parametrize("vendor", ["mlu", "musa"])


def start(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Starts one of the programs with nothing of this project but the pretend packages on its path."""
    ours = ("FLAGOS_", "PRETEND_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours) and not k.endswith("VISIBLE_DEVICES")}
    if "PRETEND_CACHE" in os.environ:
        kept["PRETEND_CACHE"] = os.environ["PRETEND_CACHE"]
    kept.update(PYTHONPATH=str(PRETEND), TORCH_DEVICE_BACKEND_AUTOLOAD="0", OMP_NUM_THREADS="1", **environment)
    command = [sys.executable, str(PRETEND / "programs" / program), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kept)


def finish(process: subprocess.Popen[str]) -> list[str]:
    """The lines that a program printed before its OK. AssertionError with its stderr if it failed."""
    out, err = process.communicate(timeout=580)
    lines = out.splitlines()
    assert process.returncode == 0 and lines[-1:] == ["OK"], err[-3000:]
    return lines[:-1]


def run(program: str, *arguments: str, **environment: str) -> list[str]:
    return finish(start(program, *arguments, **environment))


def error_of(program: str, *arguments: str, **environment: str) -> str:
    """The last lines of a program that must fail."""
    process = start(program, *arguments, **environment)
    err = process.communicate(timeout=580)[1]
    assert process.returncode == 1, err[-3000:]
    return err[-1500:]


@BOTH
def test_a_crnn_trains_to_the_losses_of_the_cpu(vendor: str) -> None:
    assert run("crnn.py", vendor, "LSTM:AdamW", "GRU:Adam:foreach", "RNN:SGD", "LSTM:Adam:fused") == []


@BOTH
@pytest.mark.parametrize(
    "check",
    [
        "factories_views_and_outputs",
        "autograd_attention_and_dropout",
        "mixed_devices",
        "mixed_precision",
        "streams_events_and_generators",
        "pinned_memory_saving_and_pickling",
        "graph_replay",
    ],
)
def test_the_device(vendor: str, check: str) -> None:
    assert run("device.py", vendor, check) == []


@BOTH
def test_memory_statistics_limit_and_out_of_memory(vendor: str) -> None:
    (said,) = run("device.py", vendor, "memory", PRETEND_MEMORY_MB="256")
    label, unit = vendor.upper(), {"mlu": "MLU", "musa": "GPU"}[vendor]
    assert said.startswith(
        f"{label} out of memory. Tried to allocate 200.00 MiB. {unit} 0 has a total capacity of 256.00 MiB"
    )
    assert f"PYTORCH_{label}_ALLOC_CONF" in said and "128.00 MiB allowed" in said


@BOTH
def test_older_builds_raise_a_plain_runtime_error(vendor: str) -> None:
    (said,) = run("vendors.py", vendor, "older_out_of_memory", PRETEND_OLD_OOM="1")
    assert said.startswith(f"RuntimeError {vendor.upper()} out of memory. Tried to allocate 4.00 GiB (")


def test_a_missing_operator_warns_once_and_goes_to_the_cpu() -> None:
    (said,) = run("vendors.py", "mlu", "fallback", PRETEND_UNSUPPORTED="_softmax")
    words = "is not currently supported on the MLU backend and will fall back to run on the CPU."
    assert said.startswith(f"The operator 'aten::_softmax' {words}")


@pytest.mark.parametrize(
    ("vendor", "text", "environment"),
    [
        (
            "mlu",
            "The operator 'aten::_softmax' is not currently implemented for the MLU device.",
            {"ENABLE_FALLBACK_TO_CPU": "0"},
        ),
        ("musa", "Could not run 'aten::_softmax' with arguments from the 'musa' backend.", {}),
    ],
)
def test_without_fallback_a_missing_operator_is_an_error(vendor: str, text: str, environment: dict[str, str]) -> None:
    said = error_of("vendors.py", vendor, "missing_operator", PRETEND_UNSUPPORTED="_softmax", **environment)
    assert f"NotImplementedError: {text}" in said


def test_injected_errors_and_the_rescue_of_failing_operators() -> None:
    failures = "synchronize=CNRT error: failed to call the driver-api function.;mm=CNNL error: CNNL_STATUS_BAD_PARAM"
    assert run("vendors.py", "mlu", "injected", PRETEND_FAIL=failures) == []
    assert run("vendors.py", "mlu", "rescued", PRETEND_FAIL=failures, ENABLE_MLU_FAIL_FALLBACK="1") == []


@pytest.mark.parametrize(
    ("vendor", "text", "chip"),
    [
        ("mlu", "CNRT error: invalid argument.", "MLU370-X8 3 7"),
        ("musa", "MUSA error: invalid device ordinal", "MTT S4000 2 2"),
    ],
)
def test_wrong_ordinals_and_properties(vendor: str, text: str, chip: str) -> None:
    assert run("vendors.py", vendor, "wrong_ordinals") == [text, text, text, chip]


@pytest.mark.parametrize(
    ("variables", "count_and_first"),
    [
        ({}, "2 0"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, "1 1"),
        ({"MLU_VISIBLE_DEVICES": "1,0", "CUDA_VISIBLE_DEVICES": ""}, "2 1"),
        ({"CN_VISIBLE_DEVICES": "1", "MLU_VISIBLE_DEVICES": "0"}, "1 1"),
        ({"MLU_VISIBLE_DEVICES": "MLU-00000000-0000-0000-0000-000000000001"}, "1 1"),
        ({"MLU_VISIBLE_DEVICES": "0,0"}, "0"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "0"),
    ],
)
def test_visible_devices_by_precedence(variables: dict[str, str], count_and_first: str) -> None:
    assert run("vendors.py", "mlu", "visible_devices", json.dumps(variables)) == [count_and_first]


def test_a_failing_deferred_call_is_silent_on_mlu_and_loud_on_musa() -> None:
    assert run("vendors.py", "mlu", "deferred_call") == []
    loud = error_of("vendors.py", "musa", "deferred_call")
    assert "MUSA call failed lazily at initialization with error: division by zero" in loud


@BOTH
@pytest.mark.parametrize("check", ["forked_child", "asking"])
def test_the_start_of_the_device(vendor: str, check: str) -> None:
    assert run("vendors.py", vendor, check) == []


@pytest.mark.parametrize(("vendor", "backend"), [("mlu", "cncl"), ("musa", "mccl")])
def test_two_processes_reduce_and_train(vendor: str, backend: str, tmp_path: Path) -> None:
    ranks = [start("two_ranks.py", vendor, backend, str(tmp_path / "store"), str(rank)) for rank in range(2)]
    assert [finish(process) for process in ranks] == [[], []]


def test_torch_mlu_has_and_lacks_what_the_public_plugin_does() -> None:
    (said,) = run("vendors.py", "mlu", "surface")
    found = json.loads(said)
    surface: dict[str, Any] = json.loads((PRETEND / "torch_mlu" / "surface.json").read_text())["modules"]
    assert len(surface["torch_mlu.mlu"]["lacks"]) == 51 and "utilization" in surface["torch_mlu.mlu"]["lacks"]
    for name, names in surface.items():
        assert found[name]["has"] == list(names["has"]), name
        assert found[name]["lacks"] == names["lacks"], name
        assert found[name]["own"] == names["own"], name
        wanted = {n: text.replace("2.0 ** 16", "65536.0") for n, text in names["has"].items() if text}
        assert found[name]["signatures"] == wanted, name


def test_torch_musa_has_the_gaps_and_the_habits_of_the_public_plugin() -> None:
    assert run("vendors.py", "musa", "musa_habits") == []


def test_the_device_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PRETEND))
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # the build imports torch in this very process
    build = importlib.import_module("_pretend.build")
    built = build.library()
    before = built.stat().st_mtime_ns
    assert build.library() == built and built.stat().st_mtime_ns == before and built.parent == build._cache()
