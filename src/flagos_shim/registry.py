"""Names, aliases, entry points and detection: from what a user says to a vendor object."""

from __future__ import annotations

import glob
import importlib
import importlib.metadata
import importlib.util
import logging
import sys
from typing import Any

from .failures import BackendUnavailableError, ConflictError, FlagosShimError, UnknownBackendError
from .vendor import Vendor
from .vendors import BUILTIN

ENTRY_POINT_GROUP = "flagos_shim.vendors"

# The order in which detection asks; a vendor of a third party comes after the built-in ones.
_LAST = "cpu"

ADVICE = "Run `flagos-diagnose --backend {name}` for every step and its remedy."

_log = logging.getLogger("flagos_shim")


def _entry_points() -> list[Any]:
    found = importlib.metadata.entry_points()
    if hasattr(found, "select"):
        return list(found.select(group=ENTRY_POINT_GROUP))
    return list(found.get(ENTRY_POINT_GROUP, []))


def load(where: str) -> Vendor:
    """The vendor object at "module:name".

    Raises:
        FlagosShimError: the module cannot be imported, has no such name, or holds something else there.
    """
    module_name, _, name = where.partition(":")
    try:
        value = getattr(importlib.import_module(module_name), name or "VENDOR")
    except (ImportError, AttributeError) as error:
        raise FlagosShimError(f"No vendor at {where!r}: {error}") from error
    if not isinstance(value, Vendor):
        raise FlagosShimError(f"{where!r} is {type(value).__name__}, expected flagos_shim.vendor.Vendor.")
    return value


def vendors(strict: str | None = None) -> dict[str, Vendor]:
    """All vendors by name, built-in ones first.

    Args:
        strict: a name the user asked for; a broken entry point of that name raises, any other is logged and left out.

    Raises:
        FlagosShimError: the entry point asked for cannot be loaded.
        ConflictError: two distributions claim one name or alias; both are named.
    """
    found = {name: load(where) for name, where in BUILTIN.items()}
    owner = {name: "flagos-shim" for vendor in found.values() for name in vendor.names}
    for point in _entry_points():
        source = getattr(getattr(point, "dist", None), "name", None) or point.value
        try:
            vendor = load(point.value)
        except FlagosShimError as error:
            if strict == point.name:
                raise FlagosShimError(f"The vendor {point.name!r} published by {source} is broken: {error}") from error
            _log.warning("The vendor %r published by %s is left out: %s", point.name, source, error)
            continue
        for name in vendor.names:
            if owner.get(name, source) != source:
                raise ConflictError(
                    f"Two distributions claim the back end name {name!r}: {owner[name]} and {source}. Uninstall one."
                )
            owner[name] = source
        found[vendor.name] = vendor
    return found


def resolve(name: str) -> Vendor:
    """The vendor called ``name`` (a name or alias, in any case).

    Raises:
        UnknownBackendError: nobody provides it; the message lists the known names.
    """
    wanted = name.strip().lower()
    known = vendors(strict=wanted)
    for vendor in known.values():
        if wanted in vendor.names:
            return vendor
    listed = ", ".join(
        v.name + (f" ({', '.join(v.aliases)})" if v.aliases else "") for v in sorted(known.values(), key=lambda v: v.name)
    )
    raise UnknownBackendError(
        f"Unknown back end {name!r}. Known: {listed}. Others come from packages that publish the entry point group "
        f"{ENTRY_POINT_GROUP!r}; is the one you want installed in this environment?"
    )


def has_device_files(vendor: Vendor) -> bool:
    """True where a device file of the vendor is present."""
    return any(glob.glob(pattern) for pattern in vendor.probe.files)


def is_installed(vendor: Vendor) -> bool:
    """True where the vendor's plugin can be found, without importing it."""
    return vendor.package is None or importlib.util.find_spec(vendor.package) is not None


def require(vendor: Vendor) -> None:
    """Check that the vendor's plugin is installed.

    Raises:
        BackendUnavailableError: it is not; the message says what to install.
    """
    if not is_installed(vendor):
        advice = f"Install it: pip install {vendor.requirement}. " if vendor.requirement else ""
        raise BackendUnavailableError(
            f"The back end {vendor.name!r} needs the package {vendor.package}, which is not installed in {sys.prefix}. "
            f"{advice}{ADVICE.format(name=vendor.name)}"
        )


def detect(rehearsed: str | None = None) -> Vendor:
    """The vendor of this machine: CUDA or HIP where torch has it, else an installed plugin with devices, else cpu.

    Args:
        rehearsed: the vendor whose plugin runs on host memory, which needs no device files.
    """
    import torch

    known = vendors()
    if rehearsed is not None:
        return known[rehearsed]
    if torch.cuda.is_available():
        return known["cuda"]
    for vendor in known.values():
        if vendor.package is not None and is_installed(vendor) and has_device_files(vendor):
            return vendor
    return known[_LAST]
