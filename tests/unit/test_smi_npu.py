"""`npu-smi`: every trap of its table, its map and its views."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flagos_shim._smi import Chip, Output, Process, SmiFormatError, State, read
from flagos_shim.vendors import _npu_smi

DATA = Path(__file__).parent / "data" / "smi"
MIB = 1024 * 1024


def sample(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def chips(table: str, mapping: str) -> tuple[Chip, ...]:
    outputs = (Output(("npu-smi", "info"), table), Output(("npu-smi", "info", "-m"), mapping))
    return _npu_smi.READER.parse(outputs)


MAP_910B = "NPU ID  Chip ID  Chip Logic ID  Chip Name\n0 0 0 Ascend 910B4\n0 1 - Mcu\n1 0 1 Ascend 910B4\n1 1 - Mcu\n"


def test_single_die_cards_with_their_processes() -> None:
    first, second = chips(sample("npu_info_910b.txt"), MAP_910B)
    assert first == Chip(
        index=0,
        name="910B4-1",
        bus_id="0000:01:00.0",
        health="OK",
        temperature=33.0,
        power=91.3,
        utilization=0.0,
        memory_used=3197 * MIB,
        memory_total=65536 * MIB,
        driver_version="25.2.0",
        processes=(),
    )
    assert second.memory_used == 65099 * MIB, "no blank before the slash"
    assert second.health == "Warning"
    assert (second.temperature, second.power, second.utilization) == (41.0, 271.1, 55.0)
    assert second.processes == (Process(1234, "python", 60704 * MIB),)


def test_two_dies_share_a_card_and_the_second_has_no_power() -> None:
    mapping = "NPU ID Chip ID Chip Logic ID Chip Phy-ID Chip Name\n0 0 0 0 Ascend910\n0 1 1 1 Ascend910\n0 2 - - Mcu\n"
    first, second = chips(sample("npu_info_a3_rows.txt"), mapping)
    assert (first.index, first.power, first.memory_used) == (0, 178.5, 3416 * MIB)
    assert (second.index, second.power, second.memory_used) == (1, None, 3195 * MIB)
    assert first.processes is None and second.processes is None, "without the process table nothing is known of them"


def test_wide_table_of_newer_drivers() -> None:
    result = chips(sample("npu_info_26_a3.txt"), sample("npu_info_m_a3.txt"))
    assert [chip.index for chip in result] == [0, 1, 2, 3], "logical ids, not card numbers 6 and 7 nor Phy-ID 12 to 15"
    assert [chip.health for chip in result] == ["OK", "OK", "UNKNOWN", "Critical"]
    assert [chip.memory_used for chip in result] == [3419 * MIB, 15242 * MIB, 0, None]
    assert [chip.temperature for chip in result] == [34.0, 35.0, 53.0, None]
    assert [chip.utilization for chip in result] == [3.0, 0.0, 0.0, None]
    assert [chip.power for chip in result] == [162.6, None, 172.0, None]
    assert result[0].processes == (Process(692318, "python3", 150 * MIB),)
    assert result[1].processes == (Process(692318, "odd|name", 12417 * MIB),)
    assert result[2].processes == ()
    assert {chip.driver_version for chip in result} == {"26.0.rc2"}


def test_inference_cards_have_no_hbm_column() -> None:
    mapping = "NPU ID Chip ID Chip Logic ID Chip Name\n2 0 0 Ascend 310P3\n2 1 1 Ascend 310P3\n2 2 - Mcu\n"
    first, second = chips(sample("npu_info_310p.txt"), mapping)
    assert (first.memory_used, first.memory_total) == (1500 * MIB, 44280 * MIB)
    assert (first.power, first.temperature, first.utilization, first.health) == (None, 45.0, 7.0, "OK")
    assert (second.health, second.memory_total) == ("Alarm", 43693 * MIB)
    assert first.processes == (Process(4711, "python3", 116 * MIB), Process(4712, "python3", None))
    assert second.processes == (), "the rows of the process table are no chips, nor processes of the other chip"


def test_the_map_leaves_management_chips_out() -> None:
    assert _npu_smi.parse_map(sample("npu_info_m.txt")) == {(3, 0): 0, (4, 0): 1}
    assert _npu_smi.parse_map(sample("npu_info_m_a3.txt")) == {(6, 0): 0, (6, 1): 1, (7, 0): 2, (7, 1): 3}
    assert _npu_smi.parse_map("NPU ID Chip ID Chip Logic ID Chip Name\n0 0 0 A\n0 1 MCU A\n") == {(0, 0): 0}


def test_a_chip_without_logical_id_has_no_index() -> None:
    table = sample("npu_info_910b.txt")
    assert [chip.index for chip in chips(table, "NPU ID Chip ID Chip Logic ID Chip Name\n1 0 0 Ascend\n")] == [None, 0]
    without = "NPU ID  Slot ID  Chip ID  Chip Phy-ID  Chip Name\n0  1  0  0  Ascend950PR\n"
    assert [chip.index for chip in chips(table, without)] == [None, None]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("91.3        33", "hot         33", "hot"),
        ("| 0     910B4-1             | OK  ", "| 0     910B4-1             ", "| 0     910B4-1"),
        ("65099/ 65536", "65099  65536", "65099  65536"),
        ("| 1234          | python                   | 60704 ", "| 1234 ", "| 1234"),
        ("HBM-Usage(MB)", "HBM-Usage(GB)", "3197 / 65536"),
        ("| 1     910B4-1  ", "| 0     910B4-1  ", "0000:02:00.0"),
    ],
)
def test_a_line_that_does_not_fit_is_named(old: str, new: str, line: str) -> None:
    text = sample("npu_info_910b.txt")
    assert old in text
    with pytest.raises(SmiFormatError) as caught:
        _npu_smi.parse_table(text.replace(old, new, 1))
    assert line in caught.value.line


@pytest.mark.parametrize(
    "text", ["dcmi model initialized failed, because the device is used.\n", "\n", "| NPU ID | Name |\n"]
)
def test_no_table(text: str) -> None:
    with pytest.raises(SmiFormatError) as caught:
        _npu_smi.parse_table(text)
    assert caught.value.line == text.strip()


def test_a_table_cut_off_after_the_first_line_of_a_chip() -> None:
    text = sample("npu_info_910b.txt")
    with pytest.raises(SmiFormatError, match="second line"):
        _npu_smi.parse_table(text[: text.index("| 0                         |")])


@pytest.mark.parametrize(
    "text", ["", "dcmi model initialized failed\n", "NPU ID Chip ID Age Chip Name\n", "NPU ID Chip ID Chip Name\n0 0\n"]
)
def test_no_map(text: str) -> None:
    with pytest.raises(SmiFormatError):
        _npu_smi.parse_map(text)


def view(name: str, chip: int = 0) -> Chip:
    return _npu_smi.view_chip(_npu_smi.parse_view(sample(name))[chip])


def test_view_with_the_chip_id_last() -> None:
    assert view("npu_view_usages.txt") == Chip(utilization=57.0, memory_total=65536 * MIB)


def test_view_with_the_chip_id_first_and_a_controller() -> None:
    assert view("npu_view_common.txt") == Chip(temperature=46.0, power=130.4, utilization=6.0, clock_rate=800.0)
    dense = sample("npu_view_common.txt").replace("\n\n", "\n")
    assert _npu_smi.parse_view(dense) == _npu_smi.parse_view(sample("npu_view_common.txt"))


def test_view_of_temperatures() -> None:
    assert view("npu_view_temp.txt") == Chip(temperature=39.0)
    dense = sample("npu_view_temp.txt").replace("\n\n", "\n")
    assert _npu_smi.parse_view(dense) == _npu_smi.parse_view(sample("npu_view_temp.txt"))


@pytest.mark.parametrize("gap", ["\n\n", "\n"])
def test_view_of_two_chips(gap: str) -> None:
    views = _npu_smi.parse_view(sample("npu_view_usages_duo.txt").replace("\n\n", gap))
    assert _npu_smi.view_chip(views[0]) == Chip(utilization=11.0, memory_total=44278 * MIB)
    assert _npu_smi.view_chip(views[1]) == Chip(utilization=22.0, memory_total=43693 * MIB)


def test_view_without_chip_id() -> None:
    text = "NPU ID : 0\nAicore curFreq(MHZ) : 100\nTemperature(C) : 65\nNPU Real-time Power(W) : 298.6\n"
    assert _npu_smi.view_chip(_npu_smi.parse_view(text)[None]) == Chip(temperature=65.0, power=298.6, clock_rate=100.0)


@pytest.mark.parametrize(
    "text",
    [
        "NPU ID : 0\nChip Count : 2\nTemperature(C) : 65\n",
        "Temperature(C) : 65\nChip ID : 0\nHealth : OK\n",
        "Chip ID : zero\nHealth : OK\n",
        "Chip ID : -\nHealth : OK\n",
        "out of order\n",
        "",
    ],
)
def test_view_that_could_be_read_in_two_ways(text: str) -> None:
    with pytest.raises(SmiFormatError):
        _npu_smi.parse_view(text)


def fake_npu_smi(folder: Path) -> None:
    folder.mkdir()
    tool = folder / "npu-smi"
    tool.write_text(
        f'''#!/bin/sh
case "$*" in
"info") cat "{DATA}/npu_info_910b.txt" ;;
"info -m") printf 'NPU ID  Chip ID  Chip Logic ID  Chip Name\\n0 0 1 Ascend 910B4\\n1 0 0 Ascend 910B4\\n' ;;
"info -t common -i 1") cat "{DATA}/npu_view_common.txt" ;;
*) echo "unknown: $*"; exit 9 ;;
esac
'''
    )
    tool.chmod(0o755)


def test_the_tool_is_asked_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npu_smi(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    reading = read(_npu_smi.READER)
    assert reading.state is State.OK
    assert [(chip.index, chip.bus_id) for chip in reading.chips] == [(1, "0000:01:00.0"), (0, "0000:02:00.0")]
    assert reading.chip(0) == reading.chips[1]
    assert reading.chip(0, visible=(1, 0)) == reading.chips[0]
    assert (
        reading.chip(2) is None and reading.chip(2, visible=(1, 0)) is None and reading.chip(-1, visible=(1,)) is None
    )


def test_one_card_by_its_logical_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npu_smi(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    reading = read(_npu_smi.card_reader(0))  # which is card 1
    assert reading.state is State.OK
    assert reading.chips == (Chip(index=0, temperature=46.0, power=130.4, utilization=6.0, clock_rate=800.0),)
    unknown = read(_npu_smi.card_reader(5))
    assert unknown.state is State.OK and unknown.chips == ()
    refused = read(_npu_smi.card_reader(1))  # card 0, of which the fake knows nothing
    assert refused.state is State.FAILED and refused.exit_code == 9
    assert _npu_smi.card_reader(0) is _npu_smi.card_reader(0), "or the cache would never know it again"
    assert replace(_npu_smi.card_reader(0)) == _npu_smi.card_reader(0)
