"""``torch.cuda`` telemetry: from the plugin where it has it, else from the vendor's SMI tool."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable

from .._context import Context
from .._cuda_names import find, index_of, stand_in

if TYPE_CHECKING:
    from .. import _smi


def chip_of(ctx: Context, index: int) -> tuple[_smi.Chip | None, str]:
    """What the vendor's tool says of the device with that ordinal, or None and the reason."""
    reader = ctx.vendor.read("telemetry")
    if reader is None:
        return None, f"{ctx.vendor.title} has no tool to ask"
    return _chip(ctx, index, reader)


def _chip(ctx: Context, index: int, reader: _smi.SmiReader) -> tuple[_smi.Chip | None, str]:
    from .. import _smi

    reading = _smi.cached_read(reader)
    chip = reading.chip(index, _visible(ctx))
    return chip, reading.detail or f"{reading.tool} says nothing of device {index}"


def _number(ctx: Context, index: int, value: Callable[[_smi.Chip], float | None]) -> tuple[float | None, str]:
    """A number that the vendor's tool has of a device, in its list of all or in its view of that one, or the reason."""
    chip, reason = chip_of(ctx, index)
    found = None if chip is None else value(chip)
    # A tool that does not know the chip, or does not work, is not asked a second time for the same call.
    if found is None and chip is not None and chip.index is not None:
        of_chip = ctx.vendor.read("telemetry").of_chip
        if of_chip is not None:
            chip, reason = _chip(ctx, index, of_chip(chip.index))
            found = None if chip is None else value(chip)
    return found, reason


def _visible(ctx: Context) -> list[int] | None:
    """The cards this process was restricted to; the tool itself shows all."""
    value = os.environ.get(ctx.vendor.visible_devices or "", None)
    if value is None:
        return None
    return [int(card) for card in value.split(",") if card.strip().isdecimal()]


def _reads(what: str, name: str, value: Callable[[_smi.Chip], float | None]) -> None:
    def build(ctx: Context, original: Any) -> Any:
        ask = find(ctx, name)

        def telemetry(device: Any = None) -> int:
            if not ctx.active:
                return int(original(device))
            index = index_of(ctx, device)
            index = ctx.module.current_device() if index is None else index
            if ask is not None:
                return int(ask(index))
            found, reason = _number(ctx, index, value)
            if found is None:
                reader = ctx.vendor.read("telemetry")
                tool = "" if reader is None else f" ({reader.tool})"
                reason = reason.rstrip(".")
                raise RuntimeError(f"torch.cuda.{name}: {what} of device {index} is not known{tool}: {reason}.")
            return round(found)

        return telemetry

    build.__doc__ = f"{what}, from the plugin, else from the vendor's SMI tool"
    stand_in(f"torch.cuda:{name}")(build)


_reads("the utilisation in percent", "utilization", lambda chip: chip.utilization)
_reads("the temperature in °C", "temperature", lambda chip: chip.temperature)
_reads("the power in mW", "power_draw", lambda chip: None if chip.power is None else 1000.0 * chip.power)
_reads("the clock in MHz", "clock_rate", lambda chip: chip.clock_rate)


@stand_in("torch.cuda:device_memory_used")
def device_memory_used(ctx: Context, original: Any) -> Any:
    """device memory in use in bytes, of all processes, from mem_get_info"""
    import torch

    def device_memory_used(device: Any = None) -> int:
        if not ctx.active:
            return int(original(device))
        free, total = torch.cuda.mem_get_info(device)
        return int(total - free)

    return device_memory_used


@stand_in("torch.cuda:memory_usage")
def memory_usage(ctx: Context, original: Any) -> Any:
    """the share of device memory in use, in percent; how busy the memory is no vendor tells"""
    import torch

    def memory_usage(device: Any = None) -> int:
        if not ctx.active:
            return int(original(device))
        free, total = torch.cuda.mem_get_info(device)
        return round(100 * (total - free) / total) if total else 0

    return memory_usage
