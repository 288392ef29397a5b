"""`nvidia-smi`, `rocm-smi` and `xpu-smi` as far as their output is attested."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagos_shim._smi import Chip, Process, SmiFormatError, State, read
from flagos_shim.vendors import _other_smi

DATA = Path(__file__).parent / "data" / "smi"
MIB = 1024 * 1024


def sample(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("clock", ["clocks.current.sm", "clocks.sm"])
def test_nvidia(clock: str) -> None:
    gpus = sample("nvidia_gpus.csv").replace("clocks.current.sm", clock)
    first, second = _other_smi.parse_nvidia(gpus, sample("nvidia_apps.csv"))
    assert first == Chip(
        index=0,
        name="NVIDIA A10G",
        bus_id="00000000:01:00.0",
        temperature=40.0,
        power=100.25,
        utilization=50.0,
        memory_used=5000 * MIB,
        memory_total=23028 * MIB,
        clock_rate=1500.0,
        driver_version="555.42.02",
        processes=(Process(100, "/usr/bin/python3", 4000 * MIB), Process(101, "odd, name", None)),
    )
    assert (second.power, second.memory_used, second.memory_total, second.clock_rate) == (None, None, None, None)
    assert second.processes == ()


@pytest.mark.parametrize(
    ("gpus", "line"),
    [
        ("No devices were found\n", "No devices were found"),
        ("", ""),
        ("index, name\n0\n", "0"),
        ("index, power.draw [W]\n0, 3 kW\n", "0, 3 kW"),
    ],
)
def test_nvidia_not_understood(gpus: str, line: str) -> None:
    with pytest.raises(SmiFormatError) as caught:
        _other_smi.parse_nvidia(gpus, sample("nvidia_apps.csv"))
    assert caught.value.line == line


def test_rocm() -> None:
    first, second = _other_smi.parse_rocm(sample("rocm.json"))
    assert first == Chip(
        index=0,
        name="Radeon RX 7900 XTX",
        temperature=77.0,
        power=222.0,
        memory_total=25753026560,
        driver_version="6.7.0",
    )
    assert second == Chip(
        index=1,
        name="AMD Instinct MI300X",
        bus_id="0000:C9:00.0",
        temperature=51.0,
        power=128.0,
        utilization=100.0,
        memory_used=300000000,
        memory_total=206158430208,
        clock_rate=1090.0,
        driver_version="6.7.0",
    )


@pytest.mark.parametrize("text", ["", "[1]", "ERROR: no GPU", '{"card0": {"GPU use (%)": "busy"}}'])
def test_rocm_not_understood(text: str) -> None:
    with pytest.raises(SmiFormatError):
        _other_smi.parse_rocm(text)


def test_xpu() -> None:
    first, second = _other_smi.parse_xpu(sample("xpu_discovery.json"), sample("xpu_dump.csv"))
    assert first == Chip(
        index=0,
        name="Intel(R) Data Center GPU Flex 170",
        bus_id="0000:4d:00.0",
        temperature=51.0,
        power=43.72,
        utilization=12.5,
        memory_used=int(82.5 * MIB),
        clock_rate=2050.0,
    )
    assert (second.index, second.power, second.temperature, second.memory_used) == (1, None, None, None)
    assert second.clock_rate == 0.0, "a printed zero is a value"


@pytest.mark.parametrize("text", ["", "{}", '{"device_list": [1]}', '{"device_list": [{"device_id": "a"}]}'])
def test_xpu_not_understood(text: str) -> None:
    with pytest.raises(SmiFormatError):
        _other_smi.parse_xpu(text, sample("xpu_dump.csv"))


def test_readers_pass_their_outputs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {
        "nvidia-smi": f'case $1 in --query-gpu*) cat "{DATA}/nvidia_gpus.csv";; *) cat "{DATA}/nvidia_apps.csv";; esac',
        "rocm-smi": f'cat "{DATA}/rocm.json"',
        "xpu-smi": f'case "$1" in discovery) cat "{DATA}/xpu_discovery.json";; *) cat "{DATA}/xpu_dump.csv";; esac',
    }
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for reader in (_other_smi.NVIDIA, _other_smi.ROCM, _other_smi.XPU):
        reading = read(reader)
        assert reading.state is State.OK, reading.detail
        assert [chip.index for chip in reading.chips] == [0, 1]
