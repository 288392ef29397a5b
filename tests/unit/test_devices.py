"""The grammar of device names, and the table that remembers what they mean."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagos_shim._devices import _TABLE_LIMIT, DeviceTable, parse

ALIASES = ("cuda", "flagos")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cuda", ("cuda", None)),
        ("flagos", ("flagos", None)),
        ("cuda:0", ("cuda", 0)),
        ("cuda:17", ("cuda", 17)),
        ("flagos:3", ("flagos", 3)),
    ],
)
def test_whole_device_names_are_recognised(text: str, expected: tuple[str, int | None]) -> None:
    assert parse(text, ALIASES) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "cpu", "cpu:0", "npu:0", "meta", "CUDA", "Cuda:0", " cuda", "cuda ", "cuda:", "cuda:-1", "cuda:01",
        "cuda:00", "cuda:1.0", "cuda:1:2", "cuda\n", "cuda:0\n", "cuda:\u0663", "cudas", "mycuda", "/data/cuda:0/x",
        "cuda:0,cuda:1", "model.cuda", "gloo:cuda", "cuda:x", "c\u0173da",
        "cuda:2147483648", "cuda:99999999999999999999",
    ],
)  # fmt: skip
def test_all_else_is_left_to_torch(text: str) -> None:
    assert parse(text, ALIASES) is None


@given(st.text())
def test_only_a_name_and_an_ordinal_are_ever_recognised(text: str) -> None:
    found = parse(text, ALIASES)
    if found is not None:
        kind, index = found
        assert text == (kind if index is None else f"{kind}:{index}")


@given(st.sampled_from(ALIASES), st.integers(0, 10**6))
def test_what_is_printed_is_parsed(kind: str, index: int) -> None:
    assert parse(f"{kind}:{index}", ALIASES) == (kind, index)


def make(index: int | None) -> str:
    return f"npu:{index}"


def test_a_table_answers_each_name_with_one_object() -> None:
    table = DeviceTable(ALIASES, lambda index: [index])
    assert table["cuda:1"] == [1] and table["cuda:1"] is table["cuda:1"]
    assert table["cpu"] == "cpu"


def test_a_table_does_not_grow_without_end() -> None:
    table = DeviceTable(ALIASES, make)
    for number in range(_TABLE_LIMIT * 2):
        assert table[f"cuda:{number}"] == f"npu:{number}"
    assert len(table) == _TABLE_LIMIT


def test_a_closed_table_gives_every_name_back() -> None:
    table = DeviceTable(ALIASES, make)
    assert table["cuda"] == "npu:None"
    table.close()
    assert table["cuda"] == "cuda" and table["cuda:1"] == "cuda:1"


def test_a_table_closed_while_a_name_is_made_keeps_nothing() -> None:
    def close_meanwhile(index: int | None) -> str:
        table.close()
        return make(index)

    table = DeviceTable(ALIASES, close_meanwhile)
    assert table["cuda:1"] == "npu:1"
    assert "cuda:1" not in table and table["cuda:1"] == "cuda:1"


def test_threads_look_up_while_the_table_is_closed() -> None:
    for _ in range(20):
        table = DeviceTable(ALIASES, make)
        wrong: list[Any] = []

        def look(table: DeviceTable = table, wrong: list[Any] = wrong) -> None:
            for number in range(300):
                text = f"cuda:{number}"
                value = table[text]
                if value not in (text, f"npu:{number}"):
                    wrong.append(value)

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        table.close()
        for thread in threads:
            thread.join()
        assert not wrong
        assert all(key == value for key, value in table.items())
