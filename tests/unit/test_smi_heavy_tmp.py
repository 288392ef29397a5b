"""Parsers of SMI tools under arbitrary text: a result or `SmiFormatError`, and no dependence on padding."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flagos_shim._smi import Chip, Output, SmiFormatError, mebibytes, quantity, whole, words
from flagos_shim.vendors import _cnmon, _npu_smi, _other_smi

DATA = Path(__file__).parent / "data" / "smi"
calmly = settings(max_examples=1500, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])


def sample(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def view(text: str) -> list[Chip]:
    return [_npu_smi.view_chip(fields) for fields in _npu_smi.parse_view(text).values()]


PARSERS: list[tuple[Callable[[str], Any], list[str]]] = [
    (_npu_smi.parse_table, ["npu_info_910b.txt", "npu_info_26_a3.txt", "npu_info_310p.txt", "npu_info_a3_rows.txt"]),
    (_npu_smi.parse_map, ["npu_info_m.txt", "npu_info_m_a3.txt"]),
    (view, ["npu_view_common.txt", "npu_view_temp.txt", "npu_view_usages.txt", "npu_view_usages_duo.txt"]),
    (_cnmon.parse_table, ["cnmon_5_10.txt", "cnmon_4_20.txt"]),
    (_cnmon.parse_json, ["cnmon_info.json"]),
    (lambda text: _other_smi.parse_nvidia(text, sample("nvidia_apps.csv")), ["nvidia_gpus.csv"]),
    (lambda text: _other_smi.parse_nvidia(sample("nvidia_gpus.csv"), text), ["nvidia_apps.csv"]),
    (_other_smi.parse_rocm, ["rocm.json"]),
    (lambda text: _other_smi.parse_xpu(text, sample("xpu_dump.csv")), ["xpu_discovery.json"]),
    (lambda text: _other_smi.parse_xpu(sample("xpu_discovery.json"), text), ["xpu_dump.csv"]),
]
CASES = [(parse, name) for parse, names in PARSERS for name in names]
cases = pytest.mark.parametrize(("parse", "name"), CASES, ids=[f"{at}-{name}" for at, (_, name) in enumerate(CASES)])


def understood_or_refused(parse: Callable[[str], Any], text: str) -> bool:
    """Whether the text was understood; any other exception than `SmiFormatError` fails the test that asks."""
    try:
        parse(text)
    except SmiFormatError as error:
        assert len(error.line) <= 300
        return False
    return True


@cases
def test_the_sample_itself_is_understood(parse: Callable[[str], Any], name: str) -> None:
    assert understood_or_refused(parse, sample(name))


@cases
@calmly
@given(data=st.data())
def test_a_damaged_sample_is_understood_or_refused(parse: Callable[[str], Any], name: str, data: st.DataObject) -> None:
    text = sample(name)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        new = data.draw(
            st.one_of(st.sampled_from([*"|/:,-\n[]{}", "N/A", "9" * 400, "-1", "1e9", "Ⅷ"]), st.text(max_size=5))
        )
        text = text[:start] + new + text[end:]
    understood_or_refused(parse, text)


@cases
@calmly
@given(data=st.data())
def test_shuffled_lines_are_understood_or_refused(parse: Callable[[str], Any], name: str, data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from(sample(name).splitlines()), max_size=20))
    understood_or_refused(parse, "\n".join(lines))


@pytest.mark.parametrize("parse", [parse for parse, _ in PARSERS])
@calmly
@given(text=st.text())
def test_any_text_is_understood_or_refused(parse: Callable[[str], Any], text: str) -> None:
    understood_or_refused(parse, text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("parse", "document"),
    [
        (_cnmon.parse_json, json.loads(sample("cnmon_info.json"))),
        (_other_smi.parse_rocm, json.loads(sample("rocm.json").partition("\n\n")[2])),
        (lambda text: _other_smi.parse_xpu(text, sample("xpu_dump.csv")), json.loads(sample("xpu_discovery.json"))),
    ],
    ids=["cnmon", "rocm", "xpu"],
)
@calmly
@given(data=st.data())
def test_any_json_value_anywhere(parse: Callable[[str], Any], document: Any, data: st.DataObject) -> None:
    document = json.loads(json.dumps(document))
    at: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], (dict, list)) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(json_values)
    understood_or_refused(parse, json.dumps(document))


@pytest.mark.parametrize(
    ("parse", "name"),
    [case for case in CASES if case[0] in (_npu_smi.parse_table, _npu_smi.parse_map, view, _cnmon.parse_table)],
)
@calmly
@given(seed=st.integers(0, 2**32))
def test_padding_does_not_matter(parse: Callable[[str], Any], name: str, seed: int) -> None:
    draw = random.Random(seed)

    def padded(line: str) -> str:
        # Only where there is padding already: a single blank may be inside a value or a label.
        return re.sub(r"(?<=\S) {2,}(?=\S)", lambda _: " " * draw.randint(2, 9), line)

    text = "\n".join(padded(line) for line in sample(name).splitlines())
    assert parse(text) == parse(sample(name))


@calmly
@given(st.one_of(json_values, st.text()))
def test_values_are_numbers_nothing_or_refused(value: object) -> None:
    for convert in (quantity, whole, mebibytes):
        try:
            number = convert(value, "the line")
        except SmiFormatError as error:
            assert error.line == "the line"
        else:
            assert number is None or isinstance(number, (int, float))
    text = words(value)
    assert text is None or text == text.strip() != ""


@calmly
@given(st.sampled_from(["-", "N/A", "NA", "n/a", "[N/A]", "--", "", " ", "[Not Supported]"]))
def test_nothing_is_not_zero(value: str) -> None:
    assert quantity(value, "") is None and whole(value, "") is None and mebibytes(value, "") is None


@calmly
@given(st.integers(0, 10**6), st.sampled_from(["", " MiB", "MiB", " MB"]))
def test_memory_is_in_bytes(number: int, unit: str) -> None:
    assert mebibytes(f"{number}{unit}", "") == number * 1024 * 1024


def test_every_reader_can_be_a_key_of_the_cache() -> None:
    readers = {
        _npu_smi.READER,
        _npu_smi.card_reader(0),
        _cnmon.READER,
        _other_smi.NVIDIA,
        _other_smi.ROCM,
        _other_smi.XPU,
    }
    assert len(readers) == 6
    assert {reader.tool for reader in readers} == {"npu-smi", "cnmon", "nvidia-smi", "rocm-smi", "xpu-smi"}
    assert _cnmon.READER.parse((Output(("cnmon",), sample("cnmon_5_10.txt")),))[0].index == 0
