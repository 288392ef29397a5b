"""CUDA's environment variables and the vendor's counterparts."""

from __future__ import annotations

import logging
import os
import re

from .vendor import Vendor

_log = logging.getLogger("flagos_shim")


# What was carried over is inherited by children together with CUDA's own variable, which a launcher may set anew for
# each (one card a worker); this prefix tells them which value of the vendor's variable nobody but the shim has set.
_CARRIED = "FLAGOS_SHIM_SET_"
_ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"


class Changes:
    """Variables that were set, and what they were before."""

    def __init__(self) -> None:
        self.before: dict[str, str | None] = {}
        self.ours: dict[str, str] = {}
        self.carried: dict[str, str] = {}
        self.visible: str | None = None

    def set(self, name: str, value: str) -> None:
        """Set a variable, remembering what it was the first time."""
        self.before.setdefault(name, os.environ.get(name))
        self.ours[name] = os.environ[name] = value

    def carry(self, source: str, target: str, value: str) -> None:
        """Set the vendor's variable ``target`` for CUDA's ``source``, unless the user has set it to something."""
        if os.environ.get(target) == os.environ.get(_CARRIED + target):
            self.set(target, value)
            self.set(_CARRIED + target, value)
            self.carried[source] = target

    def undo(self) -> None:
        """Put every variable back as it was, but for those that somebody else has set since."""
        for name, value in self.before.items():
            if os.environ.get(name) != self.ours[name]:
                continue
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        self.before.clear()
        self.ours.clear()
        self.carried.clear()
        self.visible = None


def carry_over(vendor: Vendor, changes: Changes) -> None:
    """Give the vendor's variables the values of CUDA's, where CUDA's are set and the vendor's are not."""
    if vendor.identity:
        return
    for source, target in vendor.environment.items():
        value = os.environ.get(source)
        if source == _ALLOCATOR and value is not None:
            # Where the newer common name is set, the plugin reads that, and refuses to be told both.
            value = None if "PYTORCH_ALLOC_CONF" in os.environ else allocator_options(value, vendor)
        if value is not None:
            changes.carry(source, target, value)
    carry_visible_devices(vendor, changes)


def carry_visible_devices(vendor: Vendor, changes: Changes) -> None:
    """CUDA_VISIBLE_DEVICES as the vendor's variable; called again before the first device use.

    A program may set it after importing torch, so a value carried over earlier is brought up to date.
    """
    target, value = vendor.visible_devices, os.environ.get("CUDA_VISIBLE_DEVICES")
    if target in (None, "CUDA_VISIBLE_DEVICES") or value in (None, changes.visible):
        return
    assert target is not None and value is not None
    changes.visible = value
    changes.carry("CUDA_VISIBLE_DEVICES", target, visible_devices(value, vendor))


def allocator_options(value: str, vendor: Vendor) -> str | None:
    """What of PYTORCH_CUDA_ALLOC_CONF the vendor's allocator knows; it would refuse to start at anything else.

    Returns:
        ``name:value,...``, or None where nothing is left.
    """
    # A value may be a list in brackets that has commas of its own: roundup_power2_divisions:[256:1,512:2].
    options = re.findall(r"[^,\[\]]+(?:\[[^\]]*\])?", value)
    known = [o.strip() for o in options if o.partition(":")[0].strip() in vendor.allocator_options]
    dropped = [o.strip() for o in options if o.strip() not in known]
    if dropped:
        _log.warning("%s has no counterpart of %s in %s.", vendor.title, ", ".join(dropped), _ALLOCATOR)
    return ",".join(known) or None


def visible_devices(value: str, vendor: Vendor) -> str:
    """The vendor's text for a value of CUDA_VISIBLE_DEVICES; as in CUDA, "-1" ends the list and "" means none."""
    cards: list[str] = []
    for item in (part.strip() for part in value.split(",")):
        if not (item.isascii() and item.isdecimal()):
            if item not in ("", "-1"):
                _log.warning(
                    "CUDA_VISIBLE_DEVICES=%s: %r is no ordinal of a %s card; it ends the list, as in CUDA.",
                    value,
                    item,
                    vendor.title,
                )
            break
        cards.append(item)
    ordered = sorted(cards, key=int)
    if vendor.visible_ascending and ordered != cards:
        _log.warning(
            "%s takes cards in ascending order only: CUDA_VISIBLE_DEVICES=%s becomes %s=%s.",
            vendor.title,
            value,
            vendor.visible_devices,
            ",".join(ordered),
        )
        cards = ordered
    return ",".join(cards) if cards else "-1"
