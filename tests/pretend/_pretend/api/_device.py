"""Devices: choice, properties, visibility."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

from ._lazy import _lazy_init
from ._utils import _get_device_index
from ._vendor import VENDOR, C


@dataclass(frozen=True)
class DeviceProperties:
    """What ``get_device_properties`` gives; fields as of CUDA's, read only."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    uuid: str

    def __repr__(self) -> str:
        return (
            f"_{VENDOR.label}DeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // (1 << 20)}MB, multi_processor_count={self.multi_processor_count})"
        )


def _is_compiled() -> bool:
    return True


def is_available() -> bool:
    """Whether this process sees a device."""
    return device_count() > 0


def device_count() -> int:
    """How many devices this process sees."""
    return len(C.visible_devices())


def current_device() -> int:
    """The current device's ordinal."""
    _lazy_init()
    return C.current_device()


def set_device(device: Any) -> None:
    """Makes ``device`` the current one; a negative ordinal does nothing (attested for MLU and CUDA)."""
    index = _get_device_index(device, optional=True)
    if index >= 0:
        C.set_device(index)


def _exchange_device(device: int) -> int:
    if device < 0:
        return -1
    previous = C.current_device()
    C.set_device(device)
    return previous


def _maybe_exchange_device(device: int) -> int:
    return _exchange_device(device)


class _DeviceGuard:
    def __init__(self, index: int) -> None:
        self.idx = index
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *exception: Any) -> bool:
        self.idx = _maybe_exchange_device(self.prev_idx)
        return False


class device(_DeviceGuard):
    """Context manager: the current device inside it."""

    def __init__(self, device: Any) -> None:
        super().__init__(_get_device_index(device, optional=True))


class device_of(device):
    """Context manager: the device of a tensor or storage inside it; nothing for one that is elsewhere."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == VENDOR.name else -1)


def _checked(device: Any, what: str = "device") -> int:
    _lazy_init()
    index = _get_device_index(device, optional=True)
    if index < 0 or index >= device_count():
        raise AssertionError(f"Invalid {what} id")  # Cambricon/torch_mlu mlu/__init__.py; torch_musa core/device.py
    return index


def get_device_properties(device: Any) -> DeviceProperties:
    """The properties of ``device``. AssertionError ``Invalid device id`` for an ordinal out of range."""
    ordinal = C.visible_devices()[_checked(device)]
    uuid = f"{VENDOR.label}-00000000-0000-0000-0000-{ordinal:012d}"
    major, minor = VENDOR.capability
    return DeviceProperties(VENDOR.device_name, major, minor, VENDOR.processors, C.settings().memory, uuid)


def get_device_name(device: Any | None = None) -> str:
    """The chip's name."""
    return get_device_properties(device).name


def get_device_capability(device: Any | None = None) -> tuple[int, int]:
    """``(major, minor)`` of the chip."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether two devices reach each other's memory: those of one machine do, a device itself does not."""
    return _checked(device) != _checked(peer_device, "peer device")


def synchronize(device: Any = None) -> None:
    """Waits for the device."""
    _lazy_init()
    C.synchronize(_get_device_index(device, optional=True))


def ipc_collect() -> None:
    """Frees memory that other processes have let go of: there is none here."""
    _lazy_init()


def is_bf16_supported() -> bool:
    """Whether the chip computes in bfloat16."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that torch.autocast accepts on the device (torch asks every plugin for this name)."""
    return [torch.float16, torch.bfloat16]


def _sleep(cycles: int) -> None:
    _lazy_init()


def _parse_visible_devices() -> list[Any]:
    for name in VENDOR.visible_variables:
        value = os.environ.get(name)
        if value is not None:
            break
    else:
        return list(range(64))
    chosen: list[Any] = []
    by_uuid = "-" in value and len(value) >= 36  # Cambricon/torch_mlu mlu/__init__.py
    for entry in value.split(","):
        item: Any = entry if by_uuid else int(entry) if entry.strip().isdigit() else -1
        if item in chosen:
            return []
        if item == -1 or (by_uuid and "-" not in entry):
            break
        chosen.append(item)
    return chosen


def _transform_uuid_to_ordinals(candidates: list[str], uuids: list[str]) -> list[int]:
    ordinals: list[int] = []
    for candidate in candidates:
        if candidate not in uuids:
            break
        if uuids.index(candidate) in ordinals:
            return []
        ordinals.append(uuids.index(candidate))
    return ordinals
