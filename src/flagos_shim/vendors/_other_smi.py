"""The tools of NVIDIA, AMD and Intel, as far as their output is attested.

* `nvidia-smi --query-gpu=... --format=csv` and `--query-compute-apps=...`: the manual page for the queries; headers
  such as `power.draw [W]`, `clocks.current.sm [MHz]` or `clocks.sm [MHz]`, `used_gpu_memory [MiB]` and values such as
  `[N/A]` from logs in public repositories. Process names may hold commas, so they are asked for last.
* `rocm-smi --json`: cards `card0` ... and `system`, all values strings, keys ending in `(C)` or `(c)` by version, from
  issue reports of 2019 to 2025 and the tests of public parsers. It lists processes in another form; they are not read.
* `xpu-smi discovery -j` and `xpu-smi dump`: the vendor's user guide (1.2); blank and `N/A` values from issue reports.
  `dump` takes one second by its interval. It has no per-process numbers.

Not here, because nothing but the command's name is attested: `hy-smi`, `mthreads-gmi`, `efsmi`, `mx-smi`, `ixsmi`.
Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from .._smi import Chip, Output, Process, SmiFormatError, SmiReader, mebibytes, quantity, whole, words

_CARD = re.compile(r"card([0-9]{1,4})")
_UNIT = re.compile(r"\s*\[[^\]]*\]$")


def parse_nvidia(gpus: str, applications: str) -> tuple[Chip, ...]:
    """The chips of the two CSV queries of `NVIDIA`. `index` counts by PCI bus, as torch does with
    `CUDA_DEVICE_ORDER=PCI_BUS_ID`. Raises: SmiFormatError.
    """
    processes: dict[str, list[Process]] = {}
    for row, line in _csv(applications, "gpu_uuid"):
        memory = mebibytes(_bare(row.get("used_gpu_memory")), line)
        process = Process(whole(_bare(row.get("pid")), line), _bare(row.get("process_name")), memory)
        processes.setdefault(row["gpu_uuid"], []).append(process)
    return tuple(
        Chip(
            index=whole(row["index"], line),
            name=_bare(row.get("name")),
            bus_id=_bare(row.get("pci.bus_id")),
            temperature=quantity(_bare(row.get("temperature.gpu")), line, "C"),
            power=quantity(_bare(row.get("power.draw")), line, "W"),
            utilization=quantity(_bare(row.get("utilization.gpu")), line, "%"),
            memory_used=mebibytes(_bare(row.get("memory.used")), line),
            memory_total=mebibytes(_bare(row.get("memory.total")), line),
            clock_rate=quantity(_bare(row.get("clocks.current.sm", row.get("clocks.sm"))), line, "MHz"),
            driver_version=_bare(row.get("driver_version")),
            processes=tuple(processes.get(row.get("uuid", ""), ())),
        )
        for row, line in _csv(gpus, "index")
    )


def parse_rocm(text: str) -> tuple[Chip, ...]:
    """The cards of `rocm-smi --json`; warnings above the JSON are skipped. Raises: SmiFormatError."""
    document = _json(text[max(text.find("{"), 0) :])
    driver = _lowered(document.get("system")).get("driver version")
    chips = []
    for key, value in document.items():
        number = _CARD.fullmatch(key)
        if number is None:
            continue
        card = _lowered(value)
        clock = card.get("sclk clock speed:")
        used, total = (quantity(card.get(f"vram total {what}(b)"), key) for what in ("used memory ", "memory "))
        chips.append(
            Chip(
                index=int(number[1]),
                name=_first(card, "card series", "device name"),
                bus_id=_first(card, "pci bus"),
                temperature=quantity(
                    _first(card, "temperature (sensor edge) (c)", "temperature (sensor junction) (c)"), key
                ),
                power=quantity(
                    _first(card, "current socket graphics package power (w)", "average graphics package power (w)"), key
                ),
                utilization=quantity(_first(card, "gpu use (%)"), key),
                memory_used=None if used is None else int(used),
                memory_total=None if total is None else int(total),
                clock_rate=quantity(clock, key, "MHz"),
                driver_version=words(driver if driver is not None else card.get("driver version")),
            )
        )
    return tuple(sorted(chips, key=lambda chip: chip.index or 0))


def parse_xpu(discovery: str, dump: str) -> tuple[Chip, ...]:
    """The devices of `xpu-smi discovery -j` with the values of `xpu-smi dump` beside them. Raises: SmiFormatError."""
    devices = _json(discovery).get("device_list")
    if not isinstance(devices, list):
        raise SmiFormatError("a list under `device_list`", discovery)
    values = {whole(row["DeviceId"], line): (row, line) for row, line in _csv(dump, "DeviceId")}
    chips = []
    for device in devices:
        if not isinstance(device, dict):
            raise SmiFormatError("an object in `device_list`", type(device).__name__)
        index = whole(device.get("device_id"), "device_id")
        row, line = values.get(index, ({}, ""))
        total = quantity(device.get("memory_physical_size_byte"), "memory_physical_size_byte")
        chips.append(
            Chip(
                index=index,
                name=words(device.get("device_name")),
                bus_id=words(device.get("pci_bdf_address")),
                temperature=quantity(row.get("GPU Core Temperature (Celsius Degree)"), line),
                power=quantity(row.get("GPU Power (W)"), line),
                utilization=quantity(row.get("GPU Utilization (%)"), line),
                memory_used=mebibytes(row.get("GPU Memory Used (MiB)"), line),
                memory_total=None if total is None else int(total),
                clock_rate=quantity(row.get("GPU Frequency (MHz)"), line),
                driver_version=words(device.get("driver_version")),
            )
        )
    return tuple(chips)


def _csv(text: str, needed: str) -> list[tuple[Mapping[str, str], str]]:
    """The rows of a CSV text with its header line, by column name without unit, each with its line."""
    header: list[str] = []
    rows: list[tuple[Mapping[str, str], str]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if not header:
            header = [_UNIT.sub("", title.strip()) for title in line.split(",")]
            if needed not in header:
                raise SmiFormatError(f"a header line with `{needed}`", line)
            continue
        values = [value.strip() for value in line.split(",", len(header) - 1)]
        if len(values) != len(header):
            raise SmiFormatError(f"{len(header)} values ({', '.join(header)})", line)
        rows.append((dict(zip(header, values)), line))
    if not header:
        raise SmiFormatError(f"a header line with `{needed}`, not nothing")
    return rows


def _bare(value: str | None) -> str | None:
    """A value, or None for `[N/A]`, `[Not Supported]` and whatever else stands in brackets instead of a value."""
    return None if value is None or (value.startswith("[") and value.endswith("]")) else words(value)


def _json(text: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SmiFormatError(f"JSON ({type(error).__name__})", text) from error
    if not isinstance(document, dict):
        raise SmiFormatError("a JSON object", text)
    return document


def _lowered(value: object) -> dict[str, object]:
    return {key.lower(): entry for key, entry in value.items()} if isinstance(value, dict) else {}


def _first(card: Mapping[str, object], *keys: str) -> str | None:
    """The first key with a value; which one is there depends on the chip and the version."""
    return next((text for text in (words(card.get(key)) for key in keys) if text is not None), None)


def _nvidia(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    gpus, applications = outputs
    return parse_nvidia(gpus.text, applications.text)


def _rocm(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    (output,) = outputs
    return parse_rocm(output.text)


def _xpu(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    discovery, dump = outputs
    return parse_xpu(discovery.text, dump.text)


NVIDIA = SmiReader(
    commands=(
        (
            "nvidia-smi",
            "--query-gpu=index,uuid,name,pci.bus_id,temperature.gpu,power.draw,utilization.gpu,memory.used,memory.total,"
            "clocks.sm,driver_version",
            "--format=csv",
        ),
        ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory,process_name", "--format=csv"),
    ),
    parse=_nvidia,
)

ROCM = SmiReader(
    commands=(
        (
            "rocm-smi",
            *("--showproductname", "--showbus", "--showtemp", "--showpower", "--showuse", "--showmeminfo", "vram"),
            *("--showclocks", "--showdriverversion", "--json"),
        ),
    ),
    parse=_rocm,
)

XPU = SmiReader(
    commands=(("xpu-smi", "discovery", "-j"), ("xpu-smi", "dump", "-d", "-1", "-m", "0,1,2,3,18", "-n", "1")),
    parse=_xpu,
)
