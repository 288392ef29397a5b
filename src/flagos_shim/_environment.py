"""CUDA's environment variables and the vendor's counterparts."""

from __future__ import annotations

import logging
import os
import re
from typing import Callable

from .vendor import Vendor

_log = logging.getLogger("flagos_shim")


# What was carried over is inherited by children together with CUDA's own variable, which a launcher may set anew for
# each (one card a worker); this prefix tells them which value of the vendor's variable nobody but the shim has set.
_CARRIED = "FLAGOS_SHIM_SET_"
_ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
_ALLOCATOR_COMMON = "PYTORCH_ALLOC_CONF"
# torch 2.13 itself reads these for any accelerator, and refuses what only CUDA's and HIP's allocators know.
_READ_BY_TORCH = (_ALLOCATOR_COMMON, _ALLOCATOR, "PYTORCH_HIP_ALLOC_CONF")
_OF_CUDA_ONLY = (
    *("backend", "graph_capture_record_stream_reuse", "pinned_num_register_threads", "throw_on_cudamalloc_oom"),
    *("pinned_use_cuda_host_register", "release_lock_on_cudamalloc"),
    *("pinned_use_hip_host_register", "release_lock_on_hipmalloc"),
)


class Changes:
    """Variables that were set or taken out, and what they were before.

    Attributes:
        before, ours: what a variable was, and what it was made; None where it is unset.
        carried: CUDA's variable -> the vendor's that was set for it.
        dropped: CUDA's variable -> the options in it that were left out, having no counterpart.
        visible: the value of CUDA_VISIBLE_DEVICES that was carried over last.
        cards: how many cards that leaves at most; None where it was not carried over.
    """

    def __init__(self) -> None:
        self.before: dict[str, str | None] = {}
        self.ours: dict[str, str | None] = {}
        self.carried: dict[str, str] = {}
        self.dropped: dict[str, list[str]] = {}
        self.visible: str | None = None
        self.cards: int | None = None

    def set(self, name: str, value: str | None) -> None:
        """Set a variable, or take it out (None), remembering what it was the first time."""
        self.before.setdefault(name, os.environ.get(name))
        self.ours[name] = value
        _put(name, value)

    def carry(self, source: str, target: str, value: str) -> None:
        """Set the vendor's variable ``target`` for CUDA's ``source``, unless the user has set it to something."""
        if os.environ.get(target) == os.environ.get(_CARRIED + target):
            self.set(target, value)
            self.set(_CARRIED + target, value)
            self.carried[source] = target

    def undo(self) -> None:
        """Put every variable back as it was, but for those that somebody else has set since."""
        for name, value in self.before.items():
            if os.environ.get(name) == self.ours[name]:
                _put(name, value)
        self.before.clear()
        self.ours.clear()
        self.carried.clear()
        self.dropped.clear()
        self.visible = self.cards = None


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def carry_over(vendor: Vendor, changes: Changes) -> None:
    """Give the vendor's variables the values of CUDA's, where CUDA's are set and the vendor's are not."""
    if vendor.identity:
        return
    for source, target in vendor.environment.items():
        value = os.environ.get(source)
        if value is not None and source != _ALLOCATOR:
            changes.carry(source, target, value)
    carry_allocator_options(vendor, changes)
    carry_visible_devices(vendor, changes)


def carry_allocator_options(vendor: Vendor, changes: Changes) -> None:
    """PYTORCH_CUDA_ALLOC_CONF as the vendor's variable, and without what nobody but CUDA's allocator takes.

    Called again before the first device use, since a program may set it after importing torch.
    """
    if not vendor.indexed:
        return
    dropped: dict[str, list[str]] = {}
    value, target = os.environ.get(_ALLOCATOR), vendor.environment.get(_ALLOCATOR)
    # Where the newer common name is set, the plugin reads that, and refuses to be told both.
    if value is not None and target is not None and _ALLOCATOR_COMMON not in os.environ:
        left, without = split_options(value, lambda option: option in vendor.allocator_options)
        if left is not None:
            changes.carry(_ALLOCATOR, target, left)
        if without:
            dropped[_ALLOCATOR] = without
    for name in _READ_BY_TORCH:
        left, without = split_options(os.environ.get(name, ""), lambda option: option not in _OF_CUDA_ONLY)
        if without:
            dropped.setdefault(name, without)
            changes.set(name, left)
    for name, options in dropped.items():
        if not set(options) <= set(changes.dropped.get(name, ())):
            changes.dropped[name] = options
            _log.warning("%s has no counterpart of %s in %s.", vendor.title, ", ".join(options), name)


def carry_visible_devices(vendor: Vendor, changes: Changes) -> None:
    """CUDA_VISIBLE_DEVICES as the vendor's variable; called again before the first device use.

    A program may set it after importing torch, so a value carried over earlier is brought up to date.
    """
    target, value = vendor.visible_devices, os.environ.get("CUDA_VISIBLE_DEVICES")
    if target in (None, "CUDA_VISIBLE_DEVICES") or value in (None, changes.visible):
        return
    assert target is not None and value is not None
    changes.visible = value
    chosen = visible_devices(value, vendor)
    changes.carry("CUDA_VISIBLE_DEVICES", target, chosen)
    ours = changes.ours.get(target) == os.environ.get(target) == chosen
    changes.cards = len([card for card in chosen.split(",") if card != "-1"]) if ours else None


def split_options(value: str, known: Callable[[str], bool]) -> tuple[str | None, list[str]]:
    """Take a text in the form of PYTORCH_CUDA_ALLOC_CONF apart: an allocator refuses to start at what it does not know.

    Returns:
        the options whose names are ``known``, as text (None where nothing is left); and the others, with their values.
    """
    # A value may be a list in brackets that has commas of its own: roundup_power2_divisions:[256:1,512:2].
    options = [option.strip() for option in re.findall(r"[^,\[\]]+(?:\[[^\]]*\])?", value)]
    left = [option for option in options if known(option.partition(":")[0].strip())]
    return ",".join(left) or None, [option for option in options if option not in left]


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
