"""The benchmarks run, compare what they say they compare, and their table is the one that the READMEs show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.ways import WAYS  # noqa: E402

from benchmarks import calls, measure, table  # noqa: E402

TINY = ["--sets", "1", "--rounds", "1", "--steps", "1", "--piece", "0.0001", "--starts", "1", "--pairs", "1"]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("benchmarks")
    command = [sys.executable, "-m", "benchmarks", *TINY, "--output", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600, stdout=subprocess.DEVNULL)
    return folder


def test_one_command_writes_the_table_and_the_history(output: Path) -> None:
    text = (output / "results.md").read_text(encoding="utf-8")
    (run,) = json.loads((output / "history.json").read_text(encoding="utf-8"))
    assert set(run["about"]) == {"date", "machine", "python", "load", "torch", "torch_npu", "flagos_shim"}
    assert os.uname().nodename not in json.dumps(run["about"])
    assert table.render(run) == text
    short = table.marked(text)
    assert short is not None
    for call in (*calls.MAIN, *calls.FLOOR, *calls.STEPS):
        assert not call.main or f"| {call.what} |" in short
    assert "activation, on top of torch and plugin" in short and "not asked for" in short and "memory" in short


def test_every_row_has_all_ways_or_says_why_not(output: Path) -> None:
    (run,) = json.loads((output / "history.json").read_text(encoding="utf-8"))
    measured = {(row["place"], row["what"]) for row in run["rows"]}
    failed = {error.partition(" (")[0] for error in run["errors"]}
    for call in (*calls.table(), *calls.STEPS):
        assert ("ascend", call.what) in measured
        assert ("cpu", call.what) in measured or not call.cpu
    # What only the peer cannot do is left out of its column.
    assert all("/peer)" in error for error in run["errors"]), run["errors"]
    assert len(failed) < 10


def test_every_factory_is_timed_or_named(output: Path) -> None:
    (run,) = json.loads((output / "history.json").read_text(encoding="utf-8"))
    timed = {target for call in calls.table() for target in call.targets}
    assert {"torch:zeros", "torch:Tensor.to", "torch:Tensor.new_full", "torch.fft:fftfreq", "torch:device"} <= timed
    public = [t for t in run["not_timed"] if t.startswith(("torch:", "torch.fft:")) and ":_" not in t]
    assert not timed & set(run["not_timed"])
    # New ones are to be given arguments in benchmarks/calls.py, or are allowed for here.
    assert not [t for t in public if t.startswith(("torch:empty_l", "torch:ones", "torch:rand", "torch.fft:"))]


def test_an_extra_is_the_median_of_the_differences_within_a_round() -> None:
    times = {"native": [1.0, 5.0, 2.0], "shim": [1.5, 5.1, 2.2]}
    assert measure.extra(times, "shim") == pytest.approx(0.2)
    assert measure.ratio(times, "shim") == pytest.approx(1.1)
    assert measure.extra(times, "peer") is None and measure.ratio({}, "shim") is None


def test_an_expression_is_spelled_for_each_way() -> None:
    call = calls.Call("{m}.f(y.to('{d}'))", "names", native="{m}.g('{d}')")
    assert call.spelled("shim", "cuda") == "torch.cuda.f(y.to('cuda'))"
    assert call.spelled("native", "npu") == "torch.npu.g('npu')"
    assert call.what == "`torch.cuda.f(y.to('cuda'))`"


def test_a_way_takes_nothing_over_from_the_environment_it_is_started_in() -> None:
    from benchmarks.ways import environment

    found = environment(WAYS["ascend/native"], {"FLAGOS_DEVICE_BACKEND": "cpu", "ASCEND_HOME": "x", "PATH": "p"})
    assert found == {"PATH": "p", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_a_readme_shows_the_table_of_results(name: str, tmp_path: Path) -> None:
    results = ROOT / "benchmarks" / "results.md"
    text = (ROOT / name).read_text(encoding="utf-8") if (ROOT / name).exists() else ""
    shown = table.marked(text)
    assert shown is None or shown == table.marked(results.read_text(encoding="utf-8"))
    copy = tmp_path / name
    copy.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n", encoding="utf-8")
    assert table.refresh(copy, results)
    expected = table.marked(results.read_text(encoding="utf-8"))
    assert copy.read_text(encoding="utf-8") == f"before\n{table.BEGIN}\n{expected}\n{table.END}\nafter\n"
