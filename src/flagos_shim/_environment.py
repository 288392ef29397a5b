"""CUDA's environment variables and the vendor's counterparts."""

from __future__ import annotations

import logging
import os

from .vendor import Vendor

_log = logging.getLogger("flagos_shim")


class Changes:
    """Variables that were set, and what they were before."""

    def __init__(self) -> None:
        self.before: dict[str, str | None] = {}
        self.carried: dict[str, str] = {}

    def set(self, name: str, value: str) -> None:
        """Set a variable, remembering what it was the first time."""
        self.before.setdefault(name, os.environ.get(name))
        os.environ[name] = value

    def undo(self) -> None:
        """Put every variable back as it was."""
        for name, value in self.before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.before.clear()


def carry_over(vendor: Vendor, changes: Changes) -> None:
    """Give the vendor's variables the values of CUDA's, where CUDA's are set and the vendor's are not."""
    if vendor.identity:
        return
    for source, target in vendor.environment.items():
        value = os.environ.get(source)
        if value is not None and target not in os.environ:
            changes.set(target, value)
            changes.carried[source] = target
    carry_visible_devices(vendor, changes)


def carry_visible_devices(vendor: Vendor, changes: Changes) -> None:
    """CUDA_VISIBLE_DEVICES as the vendor's variable; called again before the first device use.

    A program may set it after importing torch, so a value carried over earlier is brought up to date.
    """
    target, value = vendor.visible_devices, os.environ.get("CUDA_VISIBLE_DEVICES")
    if target is None or target == "CUDA_VISIBLE_DEVICES" or value is None:
        return
    if target in os.environ and changes.carried.get("CUDA_VISIBLE_DEVICES") != target:
        return
    changes.set(target, visible_devices(value, vendor))
    changes.carried["CUDA_VISIBLE_DEVICES"] = target


def visible_devices(value: str, vendor: Vendor) -> str:
    """The vendor's text for a value of CUDA_VISIBLE_DEVICES; as in CUDA, "-1" ends the list and "" means none."""
    cards: list[str] = []
    for item in (part.strip() for part in value.split(",")):
        if not item.isdecimal():
            break
        cards.append(item)
    ordered = sorted(cards, key=int)
    if vendor.visible_ascending and ordered != cards:
        _log.warning(
            "%s takes cards in ascending order only: CUDA_VISIBLE_DEVICES=%s becomes %s=%s.",
            vendor.title, value, vendor.visible_devices, ",".join(ordered),
        )
        cards = ordered
    return ",".join(cards) if cards else "-1"
