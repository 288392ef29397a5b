"""Huawei's `npu-smi`: the table of all chips, the map to logical ids, and the `label : value` view of one chip.

Where the shapes are from: `npu-smi info` and `info -m` as printed in public issue reports by drivers 24.1 to 26.0 on
910B, A3 (two dies a card) and 310P; `info -t common|usages|temp|power` from the vendor's guides. Columns are padded by
hand, so everything is found by header and label. The table of the 950 (`NPU ID` in its header) is not known well enough
and is reported as not understood. Imports no torch.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from .._smi import Chip, Output, Process, SmiFormatError, SmiReader, mebibytes, quantity, whole, words
from .._smi_process import Argv

Place = tuple[int, int]
"""NPU (card) number and chip number on it: how the tool names a chip; neither is the N of `npu:N`."""


class Field(NamedTuple):
    """One printed value, the unit its label gives (`W` of `Power(W)`), and the line it stands in."""

    value: str
    unit: str
    line: str


Fields = Mapping[str, Field]
"""By label, which is in lower case and without its unit."""

_UNIT = re.compile(r"\(([^()]*)\)\s*$")
_SLASH = re.compile(r"\s*/\s*")
_PAIR = re.compile(r"(N/A|[^/]*)/(N/A|[^/]*)", re.IGNORECASE)
_VERSION = re.compile(r"\bVersion:\s*(\S+)")
_BLANK = re.compile(r"\n[^\S\n]*\n")
_DIGITS = re.compile(r"[0-9]{1,9}")
_MAP_LABELS = re.compile(r"NPU ID|Slot ID|Chip ID|Chip Logic ID|Chip Phy-ID|Chip Name")


def parse_table(text: str) -> dict[Place, Chip]:
    """The chips of `npu-smi info` with their processes; `index` stays None.

    Raises:
        SmiFormatError: with the first line that does not fit its header, or the first line if there is no table.
    """
    card_header: list[str] | None = None
    chip_header: list[str] | None = None
    process_header: list[str] | None = None
    version: str | None = None
    card: Fields | None = None  # the first of a chip's two lines, until the second comes
    chips: dict[Place, Chip] = {}
    processes: dict[Place, list[Process]] = {}
    for line in text.splitlines():
        if not line.lstrip().startswith("|"):
            continue  # borders, and warnings of the driver above the table
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        start = cells[0].split()[:2]
        if start == ["NPU", "Name"]:
            card_header = cells
        elif start[:1] == ["Chip"]:
            chip_header = cells
        elif start == ["NPU", "Chip"]:
            process_header = cells
        elif process_header is not None:
            if len(cells) > 1:  # one cell: "No running processes found in NPU 0"
                place, process = _process(process_header, cells, line)
                processes.setdefault(place, []).append(process)
        elif card_header is None or chip_header is None:
            title = _VERSION.search(line)
            version = title[1] if title else version
        elif card is None:
            card = _row(card_header, cells, line)
        else:
            fields = {**card, **_row(chip_header, cells, line)}
            card = None
            place = (_identifier(fields["npu"]), _identifier(fields["chip"]))
            if place in chips:
                raise SmiFormatError(f"NPU {place[0]} chip {place[1]} only once", line)
            chips[place] = _chip(fields)
    if card_header is None or chip_header is None:
        raise SmiFormatError("a table with the headers `NPU Name` and `Chip`", _first_line(text))
    if card is not None:
        raise SmiFormatError("a second line for the last chip", text.rstrip().splitlines()[-1])
    said = process_header is not None
    return {
        place: replace(chip, driver_version=version, processes=tuple(processes.get(place, ())) if said else None)
        for place, chip in chips.items()
    }


def parse_map(text: str) -> dict[Place, int]:
    """The logical id, which is the N of `npu:N`, of each chip in `npu-smi info -m`; management chips (`-`) have none.

    Empty if the tool prints no column of logical ids (950). Raises: SmiFormatError.
    """
    labels: list[str] = []
    logical: dict[Place, int] = {}
    for line in text.splitlines():
        if not labels:
            if "NPU ID" in line and "Chip ID" in line:
                labels = _MAP_LABELS.findall(line)
                if _MAP_LABELS.sub("", line).strip() or not {"NPU ID", "Chip ID"} <= set(labels):
                    raise SmiFormatError("a header of known labels", line)
            continue
        if not line.strip():
            continue
        values = line.split(None, len(labels) - 1)  # the last one, a name, may have blanks
        if len(values) != len(labels):
            raise SmiFormatError(f"{len(labels)} values ({', '.join(labels)})", line)
        fields = dict(zip(labels, values))
        place = (_identifier(Field(fields["NPU ID"], "", line)), _identifier(Field(fields["Chip ID"], "", line)))
        number = fields.get("Chip Logic ID", "-")
        if _DIGITS.fullmatch(number):
            logical[place] = int(number)
    if not labels:
        raise SmiFormatError("a header with `NPU ID` and `Chip ID`", _first_line(text))
    return logical


def parse_view(text: str) -> dict[int | None, Fields]:
    """The values of `npu-smi info -t ... -i N` by chip number; by None if the view of a single chip has no `Chip ID`.

    That line comes before its chip's values in some views and after them in others; blank lines part the chips. What
    belongs to the management controller (`Chip Name : mcu`), which has a temperature and a power too, is left out.
    Raises: SmiFormatError.
    """
    chips: dict[int | None, Fields] = {}
    alone: list[tuple[str, Field]] = []
    several: Field | None = None
    for block in _BLANK.split(text):
        entries = [_labelled(line) for line in block.splitlines() if line.strip()]
        several = next((field for label, field in entries if label == "chip count" and field.value != "1"), several)
        entries = [entry for entry in entries if entry[0] not in ("npu id", "chip count")]
        marks = [at for at, (label, _) in enumerate(entries) if label == "chip id"]
        ends = [
            at for at, (label, field) in enumerate(entries) if label == "chip name" and field.value.lower() == "mcu"
        ]
        if not marks:
            alone += entries if not ends else []
            continue
        leading = marks[0] == 0
        if not leading and marks[-1] != len(entries) - 1 and not ends:
            raise SmiFormatError("`Chip ID` before or after the values of its chip", entries[marks[-1] + 1][1].line)
        borders = [*marks, min([len(entries), *ends])] if leading else [-1, *marks]
        for number, mark in enumerate(marks):
            chips[_identifier(entries[mark][1])] = _first_of_each(entries[borders[number] + 1 : borders[number + 1]])
    if not chips and not alone:
        raise SmiFormatError("lines of the form `label : value`", _first_line(text))
    if not chips and several is not None:
        raise SmiFormatError("a `Chip ID` for each of several chips", several.line)
    return chips or {None: _first_of_each(alone)}


def view_chip(fields: Fields, index: int | None = None) -> Chip:
    """A chip from the labels of any `-t` view, which differ between CANN versions. Raises: SmiFormatError."""
    totals = (_memory(fields, label) for label in ("hbm capacity", "ddr capacity", "memory capacity"))
    return Chip(
        index=index,
        health=_text(fields, "health"),
        temperature=_number(fields, "C", "npu temperature", "temperature"),
        power=_number(fields, "W", "npu real-time power", "power dissipation"),
        utilization=_number(fields, "%", "aicore usage rate", "npu utilization"),
        memory_total=next((total for total in totals if total), None),
        clock_rate=_number(fields, "MHz", "aicore curfreq"),
    )


def _labelled(line: str) -> tuple[str, Field]:
    title, colon, value = line.partition(":")
    if not colon:
        raise SmiFormatError("a line of the form `label : value`", line)
    label, unit = _label(title)
    return label, Field(value.strip(), unit, line)


def _label(title: str) -> tuple[str, str]:
    """`HBM-Usage(MB)` and `NPU Temperature (C)`: the label in lower case, and the unit."""
    unit = _UNIT.search(title)
    return " ".join(_UNIT.sub("", title).lower().split()), unit[1] if unit else ""


def _first_of_each(entries: list[tuple[str, Field]]) -> Fields:
    return dict(reversed(entries))


def _row(header: list[str], cells: list[str], line: str) -> Fields:
    """One line of the table: its cells are columns of the header, and most cells hold several labels."""
    fields: dict[str, Field] = {}
    if len(cells) != len(header):
        raise SmiFormatError(f"{len(header)} columns ({' | '.join(' '.join(cell.split()) for cell in header)})", line)
    for titles, cell in zip(header, cells):
        labels = [_label(title) for title in titles.split()]
        values = [cell] if len(labels) == 1 else _SLASH.sub("/", cell).split()
        if len(values) > len(labels) > 0 and labels[-1][0] == "name":
            values[len(labels) - 1 :] = [" ".join(values[len(labels) - 1 :])]
        if len(values) != len(labels):
            raise SmiFormatError(f"{len(labels)} values under `{' '.join(titles.split())}`", line)
        fields.update({label: Field(value, unit, line) for (label, unit), value in zip(labels, values)})
    return fields


def _chip(fields: Fields) -> Chip:
    used, total = _usage(fields, "hbm-usage")
    if not total:  # inference cards have no HBM column; training cards have 0 of the other memory
        used, total = _usage(fields, "memory-usage")
    return Chip(
        name=_text(fields, "name"),
        bus_id=_text(fields, "bus-id"),
        health=_text(fields, "health"),
        temperature=_number(fields, "C", "temp"),
        power=_number(fields, "W", "power"),
        utilization=_number(fields, "%", "aicore"),
        memory_used=used if total else None,
        memory_total=total or None,
    )


def _process(header: list[str], cells: list[str], line: str) -> tuple[Place, Process]:
    labels = [_label(title) for title in header]
    at = next((at for at, (label, _) in enumerate(labels) if label == "process name"), None)
    if at is None or len(cells) < len(labels):
        raise SmiFormatError(f"{len(labels)} columns ({' | '.join(label for label, _ in labels)})", line)
    end = at + 1 + len(cells) - len(labels)  # a program may have the border of the columns in its name
    values = [*cells[:at], "|".join(cells[at:end]), *cells[end:]]
    fields = {label: Field(value, unit, line) for (label, unit), value in zip(labels, values)}
    numbers = cells[0].split()
    if len(numbers) != 2:
        raise SmiFormatError("an NPU number and a chip number", line)
    npu, chip = (_identifier(Field(number, "", line)) for number in numbers)
    pid = fields.get("process id")
    return (npu, chip), Process(
        pid=whole(pid.value, line) if pid else None,
        name=_text(fields, "process name"),
        memory_used=_memory(fields, "process memory"),
    )


def _text(fields: Fields, label: str) -> str | None:
    return words(fields[label].value) if label in fields else None


def _number(fields: Fields, unit: str, *labels: str) -> float | None:
    """The first of `labels` that is there, after a check that it is printed in the unit which is expected."""
    field = next((fields[label] for label in labels if label in fields), None)
    if field is None:
        return None
    if field.unit.lower() not in ("", unit.lower()):
        raise SmiFormatError(f"a value in {unit}, not in {field.unit}", field.line)
    return quantity(field.value, field.line, unit)


def _memory(fields: Fields, label: str) -> int | None:
    megabytes = _number(fields, "MB", label)
    return mebibytes(megabytes, "")


def _usage(fields: Fields, label: str) -> tuple[int | None, int | None]:
    field = fields.get(label)
    if field is None or words(field.value) is None:
        return None, None
    pair = _PAIR.fullmatch(field.value)
    if pair is None or field.unit not in ("", "MB"):
        raise SmiFormatError(f"`{label}` as used / total in MB", field.line)
    return mebibytes(pair[1], field.line), mebibytes(pair[2], field.line)


def _identifier(field: Field) -> int:
    number = whole(field.value, field.line)
    if number is None:
        raise SmiFormatError("a number of a card or chip", field.line)
    return number


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _parse(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    table, mapping = outputs
    logical = parse_map(mapping.text)
    return tuple(replace(chip, index=logical.get(place)) for place, chip in parse_table(table.text).items())


def _place(outputs: tuple[Output, ...], index: int) -> Place | None:
    logical = parse_map(outputs[0].text)
    return next((place for place, number in logical.items() if number == index), None)


def _ask_view(index: int, outputs: tuple[Output, ...]) -> tuple[Argv, ...]:
    place = _place(outputs, index)
    return () if place is None else (("npu-smi", "info", "-t", "common", "-i", str(place[0])),)


def _parse_view(index: int, outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    place = _place(outputs, index)
    if place is None:
        return ()
    views = parse_view(outputs[1].text)
    fields = views.get(place[1], views.get(None))
    return () if fields is None else (view_chip(fields, index),)


@functools.cache
def card_reader(index: int) -> SmiReader:
    """The reader of one chip's `common` view, the only one with the clock rate; `index` is the N of `npu:N`.

    The reader is the same object for the same chip, so that `cached_read` knows it again.
    """
    return SmiReader(
        commands=(("npu-smi", "info", "-m"),),
        follow_up=functools.partial(_ask_view, index),
        parse=functools.partial(_parse_view, index),
    )


READER = SmiReader(commands=(("npu-smi", "info"), ("npu-smi", "info", "-m")), parse=_parse, of_chip=card_reader)
"""All chips of the machine, without clock rates; those are in the view of each chip."""
