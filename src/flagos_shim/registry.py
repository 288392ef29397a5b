"""Names, aliases, entry points and detection: from what a user says to a vendor object."""

from __future__ import annotations

import glob
import importlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import re
import sys
from dataclasses import dataclass

from ._version import __version__
from ._watch import Watch
from .failures import BackendUnavailableError, ConflictError, FlagosShimError, UnknownBackendError
from .vendor import Vendor
from .vendors import ALIASES, BUILTIN, RIVALS

ENTRY_POINT_GROUP = "flagos_shim.vendors"

# The order in which detection asks; a vendor of a third party comes after the built-in ones.
_LAST = "cpu"

_OWN = "flagos-shim"

ADVICE = "Run `flagos-diagnose --backend {name}` for every step and its remedy."

# Seconds: a sick driver makes an import or a count of devices hang, a third party's module may do anything.
DRIVER_LIMIT = 30.0
_MODULE_LIMIT = 10.0

_log = logging.getLogger("flagos_shim")

# Run in a process of its own: is it safe to import this vendor's module?
_TRY_MODULE = """
from flagos_shim import registry
print(registry.trial(sys.argv[1]))
"""

# Likewise: how many devices does the driver find?
_TRY_DRIVER = """
import importlib, torch
package, namespace = sys.argv[1:]
if package:
    importlib.import_module(package)
parent, _, name = namespace.rpartition(".")
module = sys.modules.get(namespace) or getattr(importlib.import_module(parent), name)
print(int(module.device_count()) if module.is_available() else 0)
"""

_TOO_NEW = re.compile(
    r"__init__\(\) got an unexpected keyword argument '(\w+)'|cannot import name '(\w+)' from 'flagos_shim\."
)


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


class _TooNewError(FlagosShimError):
    """A vendor that uses what this release does not know."""


def load(where: str) -> Vendor:
    """The vendor object at "module:name".

    Raises:
        FlagosShimError: the module cannot be imported, has no such name, or holds something else there; or its import
            brings in torch or the vendor's plugin, which would take the device's place from another back end.
    """
    module_name, _, name = where.partition(":")
    vendor = value = None
    error: BaseException | None = None
    with Watch() as watch:
        try:
            value = getattr(importlib.import_module(module_name), name or "VENDOR")
        except (Exception, SystemExit) as caught:  # a third party's module may raise anything
            error = caught
    vendor = value if isinstance(value, Vendor) else None
    package = None if vendor is None else vendor.package
    inside = package is not None and f"{module_name}.".startswith(f"{package}.")
    if "torch" in watch.names or inside or package in watch.names:
        raise FlagosShimError(
            f"The vendor module {module_name!r} imports {package or 'torch'} when it is imported; a vendor's data must "
            "be readable without starting anything. Move the object into a module of its own beside the plugin's "
            "package, e.g. acme_flagos.py beside acme_torch/, that imports only flagos_shim."
        ) from error
    if error is not None:
        found = _TOO_NEW.search(str(error)) if isinstance(error, (TypeError, ImportError)) else None
        if found is not None:
            raise _TooNewError(
                f"{where!r} was written for a newer flagos_shim: it uses {found[1] or found[2]!r}, which "
                f"{__version__}, installed here, does not know (or the name is misspelt). Update flagos_shim: "
                "pip install --upgrade flagos-shim"
            ) from error
        raise FlagosShimError(f"No vendor at {where!r}: {type(error).__name__}: {error}") from error
    if vendor is None:
        raise FlagosShimError(f"{where!r} is {type(value).__name__}, expected flagos_shim.vendor.Vendor.")
    return vendor


def trial(where: str) -> str:
    """What is wrong with the vendor at ``where``, as JSON: the text, and whether it is too new; "null" for nothing."""
    try:
        load(where)
    except FlagosShimError as error:
        return json.dumps([str(error), isinstance(error, _TooNewError)])
    return json.dumps(None)


def _tried(point: _Published) -> None:
    """Import a third party's module in a process of its own first: nobody has asked for that back end.

    Raises:
        FlagosShimError: it does not hold a vendor, hangs, or starts its plugin.
    """
    from ._child import ask
    from ._smi_process import ToolError

    try:
        wrong = json.loads(ask(_TRY_MODULE, point.value, limit=_MODULE_LIMIT))
    except (ToolError, ValueError) as error:
        raise FlagosShimError(f"Importing {point.value!r} failed: {error}.") from error
    if wrong is not None:
        raise (_TooNewError if wrong[1] else FlagosShimError)(wrong[0])


def _published(point: _Published, asked_for: bool = True) -> Vendor:
    """The vendor that an entry point publishes.

    Raises:
        FlagosShimError: it cannot be loaded, or calls itself otherwise than the entry point.
    """
    try:
        if not asked_for:
            _tried(point)
        vendor = load(point.value)
        if vendor.name != point.name:
            raise FlagosShimError(f"{point.value!r} has the name {vendor.name!r}; the entry point must have the same.")
    except FlagosShimError as error:
        verb = "is too new" if isinstance(error, _TooNewError) else "is broken"
        raise FlagosShimError(f"The vendor {point.name!r} published by {point.source} {verb}: {error}") from error
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
            vendor = _published(point, asked_for=False)
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
        vendor = _published(point)  # asked for by name, a broken one is an error and not left out
        for name_of_it in vendor.names:
            if name_of_it in BUILTIN or name_of_it in ALIASES:
                raise _clash(name_of_it, _OWN, point.source)
        return vendor
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


def has_sdk(vendor: Vendor) -> bool:
    """True where a variable says where the vendor's SDK is installed."""
    return any(os.environ.get(name) for name in vendor.probe.home)


def is_installed(vendor: Vendor) -> bool:
    """True where the vendor's plugin can be found, without importing it."""
    package = vendor.package
    return package is None or package in sys.modules or importlib.util.find_spec(package) is not None


def not_installed(vendor: Vendor) -> BackendUnavailableError:
    """The error that says that the vendor's plugin is not installed, and what to install."""
    advice = f"Install it: pip install {vendor.requirement}. " if vendor.requirement else ""
    return BackendUnavailableError(
        f"The back end {vendor.name!r} needs the package {vendor.package}, which is not installed in {sys.prefix}. "
        f"{advice}{ADVICE.format(name=vendor.name)}"
    )


def require(vendor: Vendor) -> None:
    """Check that the vendor's plugin is installed.

    Raises:
        BackendUnavailableError: it is not; the message says what to install.
    """
    if not is_installed(vendor):
        raise not_installed(vendor)


def detect(rehearsed: str | None = None) -> Vendor:
    """The vendor of this machine: CUDA or HIP where torch has it, else an installed plugin with devices, else cpu.

    Asked in stages, each only where the one before says yes: device files or an installed SDK, the plugin, and the
    driver, in a process of its own with a time limit.

    Args:
        rehearsed: the vendor whose plugin runs on host memory, which needs no device files.
    """
    import torch

    if rehearsed is not None:
        return resolve(rehearsed)
    known = vendors()
    if _cuda_works(known["cuda"]):
        # A HIP build calls itself torch.cuda too; what it was built with, it says in torch.version.
        same = (v for v in known.values() if v.identity and getattr(torch.version, v.toolkit or "", None))
        return next(same, known["cuda"])
    return next((vendor for vendor in known.values() if _is_here(vendor)), known[_LAST])


def _cuda_works(vendor: Vendor) -> bool:
    import torch

    if torch.backends.cuda.is_built() and has_device_files(vendor):
        return driver_answers(vendor)
    return bool(torch.cuda.is_available())  # no device, so no driver that could hang


def _is_here(vendor: Vendor) -> bool:
    """True where the machine has the vendor's devices, and torch or an installed plugin can use them."""
    if vendor.identity or not vendor.indexed or not (has_device_files(vendor) or has_sdk(vendor)):
        return False
    if vendor.package is not None:
        return is_installed(vendor) and driver_answers(vendor)
    module = sys.modules.get(vendor.namespace or "")  # a part of torch, which may have been built without it
    built = module is not None and getattr(module, "_is_compiled", bool)()
    return bool(built) and driver_answers(vendor)


def driver_answers(vendor: Vendor) -> bool:
    """True where the vendor's driver finds a device, asked in a process of its own; what it says is logged."""
    from ._child import ask
    from ._smi_process import ToolError

    advice = ADVICE.format(name=vendor.name)
    try:
        count = int(ask(_TRY_DRIVER, vendor.package or "", vendor.namespace or "", limit=DRIVER_LIMIT))
    except (ToolError, ValueError) as error:
        text = "Detection passes over %r, whose driver was asked for its devices: %s. %s"
        _log.warning(text, vendor.name, error, advice)
        return False
    _log.info("Detection: the driver of %r finds %d devices.", vendor.name, count)
    return count > 0
