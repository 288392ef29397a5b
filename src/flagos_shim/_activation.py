"""The order of events: settings, vendor, plugin, surfaces; idempotent, and rolled back on failure."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import _device_type, _environment, _settings, registry
from ._context import Context
from ._patching import Ledger, iterate
from .failures import BackendUnavailableError, ConflictError, FlagosShimError
from .patches import IDENTITY_SURFACES, SURFACES
from .vendor import Vendor

_log = logging.getLogger("flagos_shim")


@dataclass
class Activation:
    """What is in force: the vendor, the shared context, the ledger, and the variables that were set."""

    vendor: Vendor
    ctx: Context
    ledger: Ledger
    how: str
    environment: _environment.Changes
    notes: list[str] = field(default_factory=list)


class _State:
    """The one activation of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.current: Activation | None = None


STATE = _State()


def current() -> Activation | None:
    """The activation in force, or None."""
    return STATE.current


def activate(backend: str | None = None) -> None:
    """Route ``cuda`` and ``flagos`` to a back end, in this process and in those that it starts.

    Args:
        backend: a name or alias; None means ``FLAGOS_DEVICE_BACKEND``, and where that is unset, detection.

    Raises:
        UnknownBackendError: nobody provides that name.
        BackendUnavailableError: a step of starting it failed; the message says which.
        ConflictError: another back end or another shim is active already.
        PatchError: a patch does not fit the installed torch; torch is as it was before.
    """
    with STATE.lock:
        wanted = backend if backend is not None else _settings.BACKEND.read()
        if wanted is not None and wanted.lower() == "auto":
            wanted = None
        if STATE.current is not None:
            if wanted is not None and wanted.lower() not in STATE.current.vendor.names:
                raise ConflictError(
                    f"The back end {STATE.current.vendor.name!r} is active, {wanted!r} was asked for. One back end a "
                    "process: call flagos_shim.deactivate() first."
                )
            return
        level = _settings.LOG_LEVEL.read()
        if level is not None:
            _log.setLevel(level)
        if wanted is not None:
            vendor, how = registry.resolve(wanted), "chosen"
        else:
            vendor, how = registry.detect(_settings.REHEARSE.read()), "detected"
        STATE.current = _start(vendor, how)
        _log.log(
            logging.WARNING if how == "detected" and not vendor.indexed else logging.INFO,
            "`cuda` means %s (%s), %s.", vendor.name, vendor.title, how,
        )


def _start(vendor: Vendor, how: str) -> Activation:
    _refuse_rivals(vendor)
    changes = _environment.Changes()
    try:
        if vendor.prepare is not None:
            vendor.prepare()
        _environment.carry_over(vendor, changes)
        module = _import_plugin(vendor)
        aliases = ("cuda", "flagos") if _settings.ALIAS_CUDA.read() and not vendor.identity else ("flagos",)
        ctx = Context(vendor, aliases, module, changes)
        ledger = Ledger(ctx)
        _device_type.internal.update(filter(None, (vendor.package, *vendor.own_packages)))
        try:
            for surface in iterate(IDENTITY_SURFACES if vendor.identity else SURFACES):
                if surface.name.startswith("cuda") and _settings.DISABLE_CUDA_SHIM.read():
                    continue
                ledger.apply(surface)
            ledger.rebind(skip=("torch", "flagos_shim", vendor.package or "torch"))
        except BaseException:
            ctx.close()
            ledger.undo()
            raise
        # Children that this process starts read the variable, whatever way this one was activated.
        changes.set(_settings.BACKEND.name, vendor.name)
    except BaseException:
        changes.undo()
        raise
    return Activation(vendor, ctx, ledger, how, changes)


def _import_plugin(vendor: Vendor) -> object:
    """Import the vendor's plugin and return its device module (None for a vendor without one)."""
    if vendor.package is not None:
        registry.require(vendor)
        try:
            importlib.import_module(vendor.package)
        except FlagosShimError:
            raise
        except Exception as error:  # plugins raise ImportError, RuntimeError and plain Exception from here
            library = f" Is the vendor's SDK installed and its environment set ({vendor.probe.library})?" if (
                vendor.probe.library) else ""
            raise BackendUnavailableError(
                f"The back end {vendor.name!r}: importing {vendor.package} failed: {error}.{library} "
                f"{registry.ADVICE.format(name=vendor.name)}"
            ) from error
    if vendor.namespace is None:
        return None
    module = sys.modules.get(vendor.namespace)
    if module is None:
        module_name, _, name = vendor.namespace.rpartition(".")
        module = getattr(importlib.import_module(module_name), name, None)
    if module is None:
        raise BackendUnavailableError(
            f"The back end {vendor.name!r}: {vendor.package} was imported, but {vendor.namespace} is not there. "
            f"{registry.ADVICE.format(name=vendor.name)}"
        )
    if not vendor.identity and not registry.has_device_files(vendor) and _hidden(vendor) is False:
        if not module.device_count():
            raise BackendUnavailableError(
                f"The back end {vendor.name!r}: {vendor.package} was imported, but finds no device on this machine. "
                f"{registry.ADVICE.format(name=vendor.name)}"
            )
    return module


def _hidden(vendor: Vendor) -> bool:
    """True where the environment says that a program is to see no card, or rehearses; then none is no failure."""
    if _settings.REHEARSE.read() is not None:
        return True
    return any(os.environ.get(name) in ("", "-1") for name in ("CUDA_VISIBLE_DEVICES", vendor.visible_devices or ""))


def _refuse_rivals(vendor: Vendor) -> None:
    rivals = {
        "torchada": "remove `import torchada`",
        "torch_mlu.utils.gpu_migration": "remove `import torch_mlu.utils.gpu_migration`",
        "torch_fl": "remove `import torch_fl`: it is a device plugin of its own, and an alternative to this package",
        **vendor.conflicts,
    }
    for module, remedy in rivals.items():
        if module in sys.modules:
            raise ConflictError(f"{module} is active in this process and patches torch for the same purpose: {remedy}.")
    if os.environ.get("TORCH_TRANSFER_TO_NPU", "0") not in ("0", ""):
        raise ConflictError("TORCH_TRANSFER_TO_NPU is set, and patches torch for the same purpose: unset it.")


def deactivate() -> list[str]:
    """Restore torch by identity, and the variables that activation set.

    Returns:
        The targets that somebody else has patched on top since; those are left in place, and the stand-ins below them
        behave as torch's own.
    """
    with STATE.lock:
        active, STATE.current = STATE.current, None
        if active is None:
            return []
        active.ctx.close()
        covered = active.ledger.undo()
        active.environment.undo()
        if covered:
            _log.warning("Left in place, since something else stands on top: %s", ", ".join(covered))
        return covered


@contextlib.contextmanager
def activated(backend: str | None = None) -> Iterator[None]:
    """``with flagos_shim.activated("cpu"):`` routes inside the block only.

    Raises:
        ConflictError: another back end is active.  (The same one stays active afterwards.)
    """
    before = STATE.current
    activate(backend)
    try:
        yield
    finally:
        if before is None:
            deactivate()
