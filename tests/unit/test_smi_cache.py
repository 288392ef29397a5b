"""The cache of readings: how often a tool is run, by how many threads, and after a failure."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Callable

import pytest
from pytest_mock import MockerFixture

from flagos_shim import _smi
from flagos_shim._smi import Chip, Output, Reading, SmiFormatError, SmiReader, State, cached_read


def say(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    """One chip for each line that any command printed, named by it."""
    return tuple(Chip(name=line) for output in outputs for line in output.text.splitlines())


def names(reading: Reading) -> list[str | None]:
    assert reading.state is State.OK, reading.detail
    return [chip.name for chip in reading.chips]


MakeTool = Callable[..., SmiReader]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTool:
    """Make an executable of a shell script on PATH, and a reader that runs it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    _smi._CACHE.renew()  # readers of different tests are equal: same command, same parser

    def make(script: str, *arguments: str) -> SmiReader:
        path = folder / "fake-smi"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return SmiReader(commands=(("fake-smi", *arguments),), parse=say)

    return make


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not come to pass")


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(mocker: MockerFixture) -> Clock:
    return mocker.patch.object(_smi, "time", Clock())  # type: ignore[no-any-return]


def counted(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


def test_cache_runs_the_tool_once_a_second(tool: MakeTool, tmp_path: Path, clock: Clock) -> None:
    reader = tool(f"echo run >> {tmp_path}/runs; wc -l < {tmp_path}/runs")
    first = cached_read(reader, max_age=100)
    assert all(cached_read(reader, max_age=100) is first for _ in range(50))
    clock.ahead = 99
    assert cached_read(reader, max_age=100) is first
    clock.ahead = 101
    assert names(cached_read(reader, max_age=100)) == ["2"]
    assert names(cached_read(reader, max_age=0)) == ["3"]
    assert counted(tmp_path) == 3


@pytest.mark.parametrize("script", ["exit 1", "echo garbage"])
def test_cache_leaves_a_failing_tool_alone(tool: MakeTool, tmp_path: Path, clock: Clock, script: str) -> None:
    def refuse(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
        raise SmiFormatError("a table", outputs[0].text)

    reader = SmiReader(tool(f"echo run >> {tmp_path}/runs; {script}").commands, refuse)
    first = cached_read(reader)
    assert first.state is not State.OK
    clock.ahead = 9.5
    assert cached_read(reader) is first and cached_read(reader, max_age=0) is first
    clock.ahead = 11
    assert cached_read(reader) is not first
    assert counted(tmp_path) == 2


def test_cache_holds_a_missing_tool_for_a_while_too(tool: MakeTool, clock: Clock) -> None:
    reader = SmiReader(commands=(("fake-smi", "late"),), parse=say)
    assert cached_read(reader).state is State.MISSING
    tool("echo there")
    assert cached_read(reader).state is State.MISSING
    clock.ahead = 11
    assert names(cached_read(reader)) == ["there"]


def test_threads_share_one_run(tool: MakeTool, tmp_path: Path) -> None:
    reader = tool(f"echo run >> {tmp_path}/runs; sleep 0.3; echo done")
    readings: list[Reading] = []
    threads = [threading.Thread(target=lambda: readings.append(cached_read(reader, max_age=60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(readings) == 8 and len(set(map(id, readings))) == 1
    assert counted(tmp_path) == 1


def test_different_tools_do_not_wait_for_each_other(tool: MakeTool, tmp_path: Path) -> None:
    tool(
        f'[ "$1" = quick ] && exec echo quick; touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done'
    )
    slow = SmiReader(commands=(("fake-smi", "slow"),), parse=say)
    thread = threading.Thread(target=cached_read, args=(slow,))
    thread.start()
    try:
        wait_until((tmp_path / "begun").exists)
        assert names(cached_read(SmiReader(commands=(("fake-smi", "quick"),), parse=say))) == ["quick"]
        assert thread.is_alive(), "the other is still held"
    finally:
        (tmp_path / "go").touch()
        thread.join(60)
