"""Numbers from a vendor's SMI tool: temperature, power, health and processes, which few plugins can tell.

A vendor describes its tool as a `SmiReader` (data and one parse function); `read` runs it and `cached_read` keeps what
it said for a moment. Neither ever raises on behalf of a tool: a `Reading` says what went wrong, in one of three states.
Imports no torch.
"""

from __future__ import annotations

import enum
import os
import re
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from ._smi_process import Argv, ToolError, run

FAILURE_HOLD = 10.0
"""Seconds for which `cached_read` does not run a tool again that has just failed."""

_MAX_LINE = 300  # characters of a line that was not understood

_SAYS_NOTHING = frozenset(("", "-", "--", "/", "na", "n/a", "none", "unknown", "not supported", "unknown error"))
_NUMBER = re.compile(r"([+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?)\s*([^\s0-9]*)", re.ASCII)


class SmiFormatError(ValueError):
    """A tool printed something its parser does not understand.

    Args:
        expected: what should have stood there, in plain English.
        line: the line that did not fit, as the tool printed it.
    """

    def __init__(self, expected: str, line: str = "") -> None:
        self.expected = expected
        self.line = line.strip()[:_MAX_LINE]
        super().__init__(f"expected {expected}, got {self.line!r}")


@dataclass(frozen=True)
class Process:
    """One process on a chip: `pid` as the tool prints it, `name`, `memory_used` in bytes; None: it does not say."""

    pid: int | None = None
    name: str | None = None
    memory_used: int | None = None


@dataclass(frozen=True)
class Chip:
    """What the tool says of one chip. Every value is None where it says nothing (`-`, `N/A`, or no such column).

    Attributes:
        index: the number N of the vendor's torch device (`npu:N`) when all chips are visible.
        name: the model, e.g. `910B3`.
        bus_id: PCI address as printed, e.g. `0000:01:00.0`.
        health: the tool's own word, e.g. `OK`, `Warning`.
        temperature: °C.
        power: W. On a card with two dies the whole card's power stands at the first die, None at the second.
        utilization: % of the compute units, 0 to 100.
        memory_used, memory_total: bytes of device memory.
        clock_rate: MHz of the compute units, now.
        driver_version: as printed.
        processes: None if the tool lists none of any chip; empty if it says that none run here.
    """

    index: int | None = None
    name: str | None = None
    bus_id: str | None = None
    health: str | None = None
    temperature: float | None = None
    power: float | None = None
    utilization: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    clock_rate: float | None = None
    driver_version: str | None = None
    processes: tuple[Process, ...] | None = None


class State(enum.Enum):
    """How a reading ended."""

    OK = "ok"
    MISSING = "tool missing"
    FAILED = "tool failed"
    UNREADABLE = "output not understood"


@dataclass(frozen=True)
class Reading:
    """What one run of a tool brought: `chips` if `state` is OK, otherwise none and `detail` says why and what to do.

    Attributes:
        tool: the command's name.
        exit_code: of a tool that failed; negative for a signal; None if it did not end by itself.
        timed_out: the tool failed because it was not done within the time limit.
        line: the first line that was not understood.
    """

    tool: str
    state: State
    chips: tuple[Chip, ...] = ()
    detail: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    line: str | None = None

    def chip(self, ordinal: int, visible: Sequence[int] | None = None) -> Chip | None:
        """The chip behind the vendor's device number `ordinal`, or None if the tool tells nothing of it.

        Args:
            ordinal: N of `npu:N` in this process.
            visible: the device numbers this process was restricted to, in their order (from
                `ASCEND_RT_VISIBLE_DEVICES` and its like, which SMI tools do not look at); None: all.
        """
        if visible is not None:
            if not 0 <= ordinal < len(visible):
                return None
            ordinal = visible[ordinal]
        return next((chip for chip in self.chips if chip.index == ordinal), None)


@dataclass(frozen=True)
class Output:
    """What one command gave: itself, its standard output, and the file it wrote (`SmiReader.writes_file`), if any."""

    argv: Argv
    text: str
    written: str | None = None


def _nothing_more(_: tuple[Output, ...]) -> tuple[Argv, ...]:
    return ()


@dataclass(frozen=True)
class SmiReader:
    """How to ask one tool.

    Attributes:
        commands: argument lists. All are run and parsed together; with `alternatives` each is tried alone, in order,
            until one is understood.
        parse: makes chips of the outputs; raises `SmiFormatError` and nothing else.
        environment: variables to set for the tool, beside `LC_ALL=C`.
        writes_file: name of a file which the tool writes into its current directory; it is run in a temporary one.
        follow_up: further commands that depend on what `commands` printed (an identifier); all are run.
        of_chip: the reader of one chip by its number N of `npu:N`, where the tool tells more of one than of all; it
            gives the same object for the same chip, so that `cached_read` knows it again.
    """

    commands: tuple[Argv, ...]
    parse: Callable[[tuple[Output, ...]], tuple[Chip, ...]]
    environment: tuple[tuple[str, str], ...] = ()
    writes_file: str | None = None
    alternatives: bool = False
    follow_up: Callable[[tuple[Output, ...]], tuple[Argv, ...]] = _nothing_more
    of_chip: Callable[[int], SmiReader] | None = None

    @property
    def tool(self) -> str:
        """The command's name."""
        return self.commands[0][0]


def quantity(value: object, line: str, *units: str) -> float | None:
    """The number in one field of a tool's output.

    Args:
        value: a string such as `42`, `42 %`, `[N/A]`, or a number out of JSON.
        line: where it stands, for the error.
        units: the units that may follow the number; none is always allowed.
    Returns:
        The number, or None where the tool says `-`, `N/A` or the like.
    Raises:
        SmiFormatError: it is no number, or in another unit.
    """
    if value is None:
        return None
    # A JSON value may be true, NaN or beyond any float: all go the way of strings, and are refused there.
    text = str(value).strip("[]() \t") if isinstance(value, (str, int, float)) else type(value).__name__
    if text.lower() in _SAYS_NOTHING:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None or (match[2] and match[2].lower() not in {unit.lower() for unit in units}):
        raise SmiFormatError(f"a number{' in ' + ' or '.join(units) if units else ''} instead of {text[:40]!r}", line)
    return float(match[1])


def whole(value: object, line: str) -> int | None:
    """Like `quantity`, for identifiers: an integer without unit. Raises: SmiFormatError."""
    number = quantity(value, line)
    if number is not None and number != int(number):
        raise SmiFormatError(f"a whole number instead of {value!r}", line)
    return None if number is None else int(number)


def mebibytes(value: object, line: str) -> int | None:
    """Like `quantity`, for memory in MiB (tools that print `MB` mean MiB too); in bytes. Raises: SmiFormatError."""
    number = quantity(value, line, "MiB", "MB")
    return None if number is None else int(number * 1024 * 1024)


def words(value: object) -> str | None:
    """A text field, or None where the tool says `-`, `N/A` or the like (`UNKNOWN` is a word: a health may be so)."""
    text = str(value).strip() if isinstance(value, (str, int, float)) else ""
    return None if text.lower() in _SAYS_NOTHING - {"unknown"} else text


def read(reader: SmiReader, *, timeout: float = 5.0) -> Reading:
    """Run a tool and understand what it prints.

    Args:
        reader: which tool and how.
        timeout: seconds for all commands together; a tool that is not done by then is killed with its whole group.
    Returns:
        The reading; failures are states of it, never exceptions.
    """
    path = shutil.which(reader.tool)
    if path is None:
        return Reading(
            reader.tool,
            State.MISSING,
            detail=f"{reader.tool} was not found on PATH; install the vendor's driver tools, or mount them here.",
        )
    path = os.path.abspath(path)  # a relative entry of PATH would not be found from the temporary directory
    deadline = time.monotonic() + timeout
    if not reader.alternatives:
        return _attempt(reader, reader.commands, path, deadline)
    first: Reading | None = None
    for argv in reader.commands:
        reading = _attempt(reader, (argv,), path, deadline)
        first = first or reading
        if reading.state is State.OK or reading.timed_out:
            return reading
    assert first is not None, "a SmiReader has at least one command"
    return first


def _attempt(reader: SmiReader, commands: tuple[Argv, ...], path: str, deadline: float) -> Reading:
    try:
        outputs = tuple(_output(reader, argv, path, deadline) for argv in commands)
        outputs += tuple(_output(reader, argv, path, deadline) for argv in reader.follow_up(outputs))
        return Reading(reader.tool, State.OK, reader.parse(outputs))
    except ToolError as error:
        return Reading(
            reader.tool, State.FAILED, detail=str(error), exit_code=error.exit_code, timed_out=error.timed_out
        )
    except SmiFormatError as error:
        detail = f"{reader.tool} printed what this version does not understand: {error}. Please report that line."
        return Reading(reader.tool, State.UNREADABLE, detail=detail, line=error.line)


def _output(reader: SmiReader, argv: Argv, path: str, deadline: float) -> Output:
    environment = {**os.environ, "LC_ALL": "C", **dict(reader.environment)}
    return Output(argv, *run(argv, path, environment, deadline, reader.writes_file))


class _Slot:
    """The last reading of one reader, and the lock under which a new one is taken."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reading: Reading | None = None
        self.taken = 0.0


class _Cache:
    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget everything; after a fork too, where another thread's lock would never be released."""
        self._guard = threading.Lock()
        self._slots: dict[SmiReader, _Slot] = {}

    def get(self, reader: SmiReader, max_age: float) -> Reading:
        with self._guard:
            slot = self._slots.setdefault(reader, _Slot())
        with slot.lock:
            if slot.reading is not None:
                hold = max_age if slot.reading.state is State.OK else max(max_age, FAILURE_HOLD)
                if time.monotonic() - slot.taken < hold:
                    return slot.reading
            slot.reading = read(reader)
            slot.taken = time.monotonic()
            return slot.reading


_CACHE = _Cache()
os.register_at_fork(after_in_child=_CACHE.renew)


def cached_read(reader: SmiReader, max_age: float = 1.0) -> Reading:
    """Like `read`, but a reading younger than `max_age` seconds is given again; a failed one for `FAILURE_HOLD`.

    Threads that ask at the same time share one run of the tool.
    """
    return _CACHE.get(reader, max_age)
