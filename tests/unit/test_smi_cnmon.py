"""`cnmon`: the table of three driver generations, and the JSON file as the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flagos_shim._smi import Chip, Process, SmiFormatError, State, read
from flagos_shim.vendors import _cnmon

DATA = Path(__file__).parent / "data" / "smi"
MIB = 1024 * 1024


def sample(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def test_driver_5() -> None:
    first, second = _cnmon.parse_table(sample("cnmon_5_10.txt"))
    assert first == Chip(
        index=0,
        name="MLU370-X8",
        bus_id="0000:01:00.0",
        temperature=28.0,
        power=107.0,
        utilization=0.0,
        memory_used=0,
        memory_total=20638 * MIB,
        driver_version="v5.10.22",
        processes=(),
    )
    assert (second.power, second.utilization, second.memory_used) == (210.0, 42.0, 9412 * MIB)
    assert second.processes == (Process(1234, "python", 9400 * MIB),)


def test_driver_4_has_no_bus_id_and_the_driver_in_a_column() -> None:
    first, second = _cnmon.parse_table(sample("cnmon_4_20.txt"))
    assert (first.bus_id, first.driver_version, first.name) == (None, "v4.20.11", "MLU370-X4")
    assert (first.temperature, first.power, first.memory_used) == (32.0, 3.7, 967 * MIB), "not vMemory-Usage"
    assert (second.temperature, second.power, second.utilization) == (None, None, None)
    assert (second.memory_used, second.memory_total) == (None, 23308 * MIB)
    assert first.processes == (
        Process(77, "python train.py --a | tee log", 967 * MIB),
        Process(78, "python", None),
    )


def test_no_processes() -> None:
    text = sample("cnmon_5_10.txt")
    start = text.index("|  1     /   1234")
    idle = text[:start] + "|  No running processes found                                                  |\n"
    assert [card.processes for card in _cnmon.parse_table(idle)] == [(), ()]
    cut = text[: text.index("| Processes:")]
    assert [card.processes for card in _cnmon.parse_table(cut)] == [None, None]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("48C", "warm", "warm"),
        ("48C", "48F", "48F"),
        ("210 W/ 250 W", "210 W", "210 W"),
        ("9412 MiB/", "9412 GiB/", "9412 GiB"),
        ("| 42%               N/A |", "| 42% |", "42%"),
        ("9400 MiB |", "much |", "1234"),
        ("|  1     /   1234", "|  x     /   1234", "1234"),
        ("| Card  VF  Name       Firmware |               Bus-Id | Util        Ecc-Error |\n", "", "MLU370-X8"),
    ],
)
def test_a_line_that_does_not_fit_is_named(old: str, new: str, line: str) -> None:
    text = sample("cnmon_5_10.txt")
    assert old in text
    with pytest.raises(SmiFormatError) as caught:
        _cnmon.parse_table(text.replace(old, new, 1))
    assert line in caught.value.line


@pytest.mark.parametrize("text", ["", "cnmon: cannot open /dev/cambricon_ctl\n"])
def test_no_table(text: str) -> None:
    with pytest.raises(SmiFormatError) as caught:
        _cnmon.parse_table(text)
    assert caught.value.line == text.strip()


def test_json_file() -> None:
    expected = Chip(
        index=0,
        name="MLU370-X8",
        bus_id="0000:01:00.0",
        temperature=48.0,
        utilization=42.0,
        memory_used=9412 * MIB,
        memory_total=24576 * MIB,
    )
    text = sample("cnmon_info.json")
    assert _cnmon.parse_json(text) == (expected,)
    as_strings = text.replace("9412", '"9412 MiB"').replace('"Chip": 48', '"Chip": "48 C"').replace("42}", '"42 %"}')
    assert json.loads(as_strings)["CnmonInfo"][0]["Utilization"] == {"MLUAverage": "42 %"}
    assert _cnmon.parse_json(as_strings) == (expected,)


def test_json_with_little_in_it() -> None:
    document = {
        "CnmonInfo": [{"CardNum": "1", "Temperature": {"Chip": "N/A"}, "PhysicalMemUsage": {}, "PCI": {"Bus": "01"}}]
    }
    assert _cnmon.parse_json(json.dumps(document)) == (Chip(index=1),)
    assert _cnmon.parse_json('{"CnmonInfo": []}') == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"CnmonInfo": [1]}',
        '{"CnmonInfo": [{"Temperature": 48}]}',
        '{"CnmonInfo": [{"Temperature": {"Chip": true}}]}',
        '{"CnmonInfo": [{"Temperature": {"Chip": NaN}}]}',
        '{"CnmonInfo": [{"Temperature": {"Chip": [48]}}]}',
        '{"CnmonInfo": [{"CardNum": 0.5}]}',
    ],
)
def test_json_that_is_not_understood(text: str) -> None:
    with pytest.raises(SmiFormatError):
        _cnmon.parse_json(text)


def fake_cnmon(folder: Path, table: str) -> None:
    folder.mkdir()
    tool = folder / "cnmon"
    tool.write_text(
        f'''#!/bin/sh
pwd >> "{folder}/places"
if [ "$*" = "info -j" ]; then
    cp "{DATA}/cnmon_info.json" . && echo "Card 0"
else
    {table}
fi
'''
    )
    tool.chmod(0o755)


def test_the_table_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cnmon(tmp_path / "bin", f'cat "{DATA}/cnmon_5_10.txt"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    reading = read(_cnmon.READER)
    assert reading.state is State.OK and [chip.power for chip in reading.chips] == [107.0, 210.0]
    assert len((tmp_path / "bin" / "places").read_text().splitlines()) == 1


@pytest.mark.parametrize("table", ["echo gibberish", "exit 3"])
def test_the_file_is_the_way_out_and_leaves_nothing(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cnmon(tmp_path / "bin", table)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", "../bin:/usr/bin:/bin")  # a relative entry has to be found from the temporary directory
    reading = read(_cnmon.READER)
    assert reading.state is State.OK and [chip.temperature for chip in reading.chips] == [48.0]
    assert list(here.iterdir()) == []
    places = (tmp_path / "bin" / "places").read_text().splitlines()
    assert len(places) == 2 and not any(Path(place).exists() for place in places)


def test_if_both_fail_the_first_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cnmon").write_text('#!/bin/sh\necho "no card ($*)"\n')
    (tmp_path / "cnmon").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    reading = read(_cnmon.READER)
    assert reading.state is State.UNREADABLE and reading.line == "no card ()" and reading.chips == ()
