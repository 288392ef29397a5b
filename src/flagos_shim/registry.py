"""Names, aliases, entry points and detection: from what a user says to a vendor object."""

from __future__ import annotations

import glob
import importlib
import importlib.metadata
import importlib.util
import logging
import sys
from dataclasses import dataclass

from .failures import BackendUnavailableError, ConflictError, FlagosShimError, UnknownBackendError
from .vendor import Vendor
from .vendors import ALIASES, BUILTIN, RIVALS

ENTRY_POINT_GROUP = "flagos_shim.vendors"

# The order in which detection asks; a vendor of a third party comes after the built-in ones.
_LAST = "cpu"

_OWN = "flagos-shim"

ADVICE = "Run `flagos-diagnose --backend {name}` for every step and its remedy."

_log = logging.getLogger("flagos_shim")


@dataclass(frozen=True)
class _Published:
    """An entry point, and the distribution that it is from."""

    name: str
    value: str
    source: str


def _entry_points() -> list[_Published]:
    # Not importlib.metadata.entry_points(): CPython 3.9's does not say which distribution an entry point is from.
    found: dict[tuple[str, str], _Published] = {}
    for distribution in importlib.metadata.distributions():
        for point in distribution.entry_points:
            if point.group == ENTRY_POINT_GROUP:
                # A distribution can be on the path twice, installed and as its source tree.
                published = _Published(point.name, point.value, distribution.metadata["Name"])
                found.setdefault((point.name, point.value), published)
    return list(found.values())


def load(where: str) -> Vendor:
    """The vendor object at "module:name".

    Raises:
        FlagosShimError: the module cannot be imported, has no such name, or holds something else there.
    """
    module_name, _, name = where.partition(":")
    try:
        value = getattr(importlib.import_module(module_name), name or "VENDOR")
    except Exception as error:  # a third party's module may raise anything
        raise FlagosShimError(f"No vendor at {where!r}: {type(error).__name__}: {error}") from error
    if not isinstance(value, Vendor):
        raise FlagosShimError(f"{where!r} is {type(value).__name__}, expected flagos_shim.vendor.Vendor.")
    return value


def _published(point: _Published) -> Vendor:
    """The vendor that an entry point publishes.

    Raises:
        FlagosShimError: it cannot be loaded, or calls itself otherwise than the entry point.
    """
    try:
        vendor = load(point.value)
        if vendor.name != point.name:
            raise FlagosShimError(f"{point.value!r} has the name {vendor.name!r}; the entry point must have the same.")
    except FlagosShimError as error:
        raise FlagosShimError(f"The vendor {point.name!r} published by {point.source} is broken: {error}") from error
    return vendor


def _clash(name: str, *sources: str) -> ConflictError:
    return ConflictError(
        f"The back end name {name!r} is claimed twice, by {' and by '.join(sources)}. "
        "Uninstall the one you do not want."
    )


def conflicts() -> dict[str, str]:
    """Modules of the built-in vendors that patch torch for the same purpose -> what to remove."""
    return dict(RIVALS)


def vendors() -> dict[str, Vendor]:
    """All vendors by name, built-in ones first; a broken entry point is logged and left out.

    Raises:
        ConflictError: two vendors claim one name or alias; the distributions are named.
    """
    found = {name: load(where) for name, where in BUILTIN.items()}
    owner = {name: _OWN for vendor in found.values() for name in vendor.names}
    for point in _entry_points():
        try:
            vendor = _published(point)
        except FlagosShimError as error:
            _log.warning("%s It is left out.", error)
            continue
        for name in vendor.names:
            if name in owner:
                raise _clash(name, owner[name], point.source)
            owner[name] = point.source
        found[vendor.name] = vendor
    return found


def resolve(name: str) -> Vendor:
    """The vendor called ``name`` (a name or alias, in any case).

    A built-in one is found without importing what third parties publish, so that nothing of theirs can stand in its
    way; but another distribution that publishes the same name is refused, since the user may have meant that one.

    Raises:
        UnknownBackendError: nobody provides it; the message lists the known names.
        ConflictError: two distributions provide it; both are named.
        FlagosShimError: the entry point of that name cannot be loaded.
    """
    wanted = name.strip().lower()
    points = [point for point in _entry_points() if point.name == wanted]
    where = BUILTIN.get(ALIASES.get(wanted, wanted))
    builtin = None if where is None else load(where)
    sources = [_OWN] * (builtin is not None) + [point.source for point in points]
    if len(sources) > 1:
        raise _clash(wanted, *sources)
    if builtin is not None:
        return builtin
    for point in points:
        _published(point)  # asked for by name, a broken one is an error and not left out
    known = vendors()
    for vendor in known.values():
        if wanted in vendor.names:
            return vendor
    listed = ", ".join(
        v.name + (f" ({', '.join(v.aliases)})" if v.aliases else "")
        for v in sorted(known.values(), key=lambda v: v.name)
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
    package = vendor.package
    return package is None or package in sys.modules or importlib.util.find_spec(package) is not None


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

    if rehearsed is not None:
        return resolve(rehearsed)
    known = vendors()
    if torch.cuda.is_available():
        # A HIP build calls itself torch.cuda too; what it was built with, it says in torch.version.
        same = (v for v in known.values() if v.identity and getattr(torch.version, v.toolkit or "", None))
        return next(same, known["cuda"])
    return next((vendor for vendor in known.values() if _is_here(vendor)), known[_LAST])


def _is_here(vendor: Vendor) -> bool:
    """True where the machine has the vendor's devices, and torch or an installed plugin can use them."""
    if vendor.identity or not vendor.indexed or not has_device_files(vendor):
        return False
    if vendor.package is not None:
        return is_installed(vendor)
    module = sys.modules.get(vendor.namespace or "")  # a part of torch, which may have been built without it
    return module is not None and bool(module.is_available())
