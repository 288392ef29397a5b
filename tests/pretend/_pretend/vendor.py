"""The record by which the pretend device takes a vendor's name, wordings and environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from . import build


@dataclass(frozen=True)
class Vendor:
    """One vendor as the device shows it.

    Texts have ``{0}``, ``{1}`` ... for their arguments: ``oom`` and ``oom_old`` get size, device, capacity, free,
    allocated, cached, the note on an allowed fraction, reserved; ``fallback``, ``strict`` and ``rescue`` the operator;
    ``bad_ordinal`` and ``allocator_ordinal`` the ordinal and the number of devices; ``collective`` the function and
    the cause; ``collective_host_tensor`` the tensor's device; ``no_device`` and ``oom_absurd`` nothing.
    """

    name: str
    label: str
    device_name: str
    capability: tuple[int, int]
    processors: int
    visible_variables: tuple[str, ...]
    alloc_conf: str
    no_caching: str
    collective: str
    process_group: str
    pluggable: str
    texts: Mapping[str, str]
    deferred_call_raises: bool
    strict: tuple[str, str] = ("", "")  # variable and the value that turns the CPU fallback off
    rescue: tuple[str, str] = ("", "")  # variable and the value that sends failing operators to the CPU
    wide_collectives: bool = True  # False: float64 travels as float32
    always_strict: bool = False  # the plugin has no CPU fallback at all

    def configure(self) -> ModuleType:
        """Loads the C++ device and gives it this vendor's settings and those of the ``PRETEND_*`` variables."""
        device = build.load()
        settings = device.settings()
        settings.devices = int(os.environ.get("PRETEND_DEVICES", "2"))
        settings.memory = int(os.environ.get("PRETEND_MEMORY_MB", "1024")) << 20
        settings.unsupported = _listed("PRETEND_UNSUPPORTED", ",")
        settings.failures = dict(entry.split("=", 1) for entry in _listed("PRETEND_FAIL", ";"))
        settings.visible_variables = list(self.visible_variables)
        settings.caching = os.environ.get(self.no_caching, "0") in ("", "0")
        settings.strict = self.always_strict or _is(self.strict)
        settings.rescue = _is(self.rescue)
        settings.wide_collectives = self.wide_collectives
        settings.plain_oom = os.environ.get("PRETEND_OLD_OOM") == "1"
        settings.texts = {**self.texts, "label": self.label}
        return device


def _listed(variable: str, separator: str) -> list[str]:
    return [entry.strip() for entry in os.environ.get(variable, "").split(separator) if entry.strip()]


def _is(setting: tuple[str, str]) -> bool:
    variable, value = setting
    return bool(variable) and os.environ.get(variable) == value


def mount(path: list[str]) -> None:
    """Lets the package with this ``__path__`` hold the shared API modules as its own submodules."""
    path.append(str(Path(__file__).resolve().parent / "api"))
