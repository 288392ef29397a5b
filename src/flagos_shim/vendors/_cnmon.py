"""Cambricon's `cnmon`: the table it prints, and the JSON file of `cnmon info -j`.

Where the shapes are from: the table as printed by drivers 1.16, 4.20 and 5.10 in public guides and issue reports; the
keys of the JSON file as two independent public tools read them (no full sample is known, so every key may be missing
and numbers may be strings). The table is asked first: it alone has power and processes. The number of a card is taken
for the N of `mlu:N`. Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from .._smi import Chip, Output, Process, SmiFormatError, SmiReader, mebibytes, quantity, whole, words

JSON_FILE = "cnmon_info.json"
"""What `cnmon info -j` writes into its current directory; on standard output it prints another text."""

_BORDER = re.compile(r"[\s|+=-]*")
_DRIVER = re.compile(r"\bDriver\s+(\S+)")
_PAIR = re.compile(r"(N/A|[^/]*?)\s*/\s*(N/A|[^/]*)", re.IGNORECASE)
_COMMAND = re.compile(r"(.*?)\s+(N/A|-|[0-9.]+\s*[A-Za-z]+)", re.IGNORECASE)
_WANTED = frozenset(("card", "name", "bus-id", "driver", "util", "temp", "pwr:usage/cap", "memory-usage"))


def parse_table(text: str) -> tuple[Chip, ...]:
    """The cards of the table that `cnmon` prints, with their processes.

    Raises:
        SmiFormatError: with the first line that does not fit its header, or the first line if there is no table.
    """
    headers: list[list[str]] = []
    version: str | None = None
    upper: tuple[dict[str, str], str] | None = None  # the first of a card's two lines, until the second comes
    cards: list[Chip] = []
    processes: dict[int, list[Process]] = {}
    before_command: int | None = None  # how many columns the process table has before the command
    said = False
    for line in text.splitlines():
        inner = line.strip()
        if not inner.startswith("|") or _BORDER.fullmatch(inner):
            continue  # borders and the date
        inner = inner[1:-1].strip() if inner.endswith("|") else inner[1:].strip()
        cells = [cell.strip() for cell in inner.split("|")]
        start = inner.split()[0]
        if inner == "Processes:":
            said = True
        elif said and start == "Card":
            before_command = len(inner.partition("Command Line")[0].split())
        elif said:
            if not inner.startswith("No running processes"):
                card, process = _process(inner, before_command, line)
                processes.setdefault(card, []).append(process)
        elif start == "CNMON":
            title = _DRIVER.search(inner)
            version = title[1] if title else None
        elif start in ("Card", "Fan"):
            headers.append(cells)
        elif len(headers) != 2:
            raise SmiFormatError("the two header lines `Card ...` and `Fan ...` first", line)
        elif upper is None:
            upper = (_row(headers[0], cells, line), line)
        else:
            cards.append(_card(*upper, _row(headers[1], cells, line), line, version))
            upper = None
    if len(headers) != 2:
        first = next((line for line in text.splitlines() if line.strip()), "")
        raise SmiFormatError("a table with the header lines `Card ...` and `Fan ...`", first)
    if upper is not None:
        raise SmiFormatError("a second line for the last card", upper[1])
    if not said:
        return tuple(cards)
    return tuple(replace(card, processes=tuple(processes.get(card.index or 0, ()))) for card in cards)


def parse_json(text: str) -> tuple[Chip, ...]:
    """The cards of `cnmon_info.json`. Raises: SmiFormatError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SmiFormatError(f"JSON in {JSON_FILE} ({type(error).__name__})", text) from error
    entries = document.get("CnmonInfo") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise SmiFormatError("a list under `CnmonInfo`", text)
    return tuple(_entry(entry) for entry in entries)


def _entry(entry: object) -> Chip:
    card = _object(entry, "CnmonInfo")
    number = card.get("CardNum")
    line = f"card {number if isinstance(number, (int, str)) else 'without number'} of {JSON_FILE}"
    memory = _object(card.get("PhysicalMemUsage"), "PhysicalMemUsage")
    return Chip(
        index=whole(number, line),
        name=words(card.get("ProductName")),
        bus_id=_bus_id(_object(card.get("PCI"), "PCI")),
        temperature=quantity(_object(card.get("Temperature"), "Temperature").get("Chip"), line, "C"),
        utilization=quantity(_object(card.get("Utilization"), "Utilization").get("MLUAverage"), line, "%"),
        memory_used=mebibytes(memory.get("Used"), line),
        memory_total=mebibytes(memory.get("Total"), line),
    )


def _object(value: object, key: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SmiFormatError(f"an object under `{key}`", type(value).__name__)
    return value


def _bus_id(pci: Mapping[str, object]) -> str | None:
    parts = [words(pci.get(key)) for key in ("DomainID", "Bus", "Device", "Function")]
    domain, bus, device, function = parts
    return None if None in parts else f"{domain}:{bus}:{device}.{function}"


def _row(header: list[str], cells: list[str], line: str) -> dict[str, str]:
    """The wanted values of one line, by label in lower case; most cells of the header hold several labels."""
    fields: dict[str, str] = {}
    if len(cells) != len(header):
        raise SmiFormatError(f"{len(header)} columns ({' | '.join(' '.join(cell.split()) for cell in header)})", line)
    for titles, cell in zip(header, cells):
        labels = titles.lower().split()
        if _WANTED.isdisjoint(labels):
            continue
        values = cell.split()
        if len(labels) == 1:
            values = [cell]
        elif len(values) < len(labels):
            raise SmiFormatError(f"{len(labels)} values under `{' '.join(titles.split())}`", line)
        # Blanks inside a value: in a name, otherwise in the last of the cell (`107 W/ 250 W`).
        wide = labels.index("name") if "name" in labels else len(labels) - 1
        after = len(labels) - 1 - wide
        values = [*values[:wide], " ".join(values[wide : len(values) - after]), *values[len(values) - after :]]
        fields.update(zip(labels, values))
    return fields


def _card(upper: dict[str, str], first: str, lower: dict[str, str], second: str, version: str | None) -> Chip:
    power, _ = _pair(lower.get("pwr:usage/cap"), second)
    used, total = _pair(lower.get("memory-usage"), second)
    index = whole(upper.get("card"), first)
    if index is None:
        raise SmiFormatError("the number of a card", first)
    return Chip(
        index=index,
        name=words(upper.get("name")),
        bus_id=words(upper.get("bus-id")),
        temperature=quantity(lower.get("temp"), second, "C"),
        power=quantity(power, second, "W"),
        utilization=quantity(upper.get("util"), first, "%"),
        memory_used=mebibytes(used, second),
        memory_total=mebibytes(total, second),
        driver_version=version or words(upper.get("driver")),  # a column of its own up to driver 4
    )


def _pair(value: str | None, line: str) -> tuple[str | None, str | None]:
    if words(value) is None:
        return None, None
    pair = _PAIR.fullmatch(value or "")
    if pair is None:
        raise SmiFormatError("a value of the form `used / total`", line)
    return pair[1], pair[2]


def _process(inner: str, before_command: int | None, line: str) -> tuple[int, Process]:
    values = inner.split(None, before_command or 0)
    if before_command is None or before_command < 2 or len(values) <= before_command:
        raise SmiFormatError("a process under the header `Card ... PID ... Command Line`", line)
    command = _COMMAND.fullmatch(values[-1])
    card = whole(values[0], line)
    if command is None or card is None:
        raise SmiFormatError("a card, a process and its memory in MiB", line)
    pid = whole(values[before_command - 1], line)
    return card, Process(pid=pid, name=words(command[1]), memory_used=mebibytes(command[2], line))


def _parse(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    (output,) = outputs
    if output.argv[1:]:
        if output.written is None:
            raise SmiFormatError(f"the file {JSON_FILE} beside this text", output.text)
        return parse_json(output.written)
    return parse_table(output.text)


READER = SmiReader(
    commands=(("cnmon",), ("cnmon", "info", "-j")), parse=_parse, writes_file=JSON_FILE, alternatives=True
)
"""All cards of the machine; health and clock rate are in neither form."""
