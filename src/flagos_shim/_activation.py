"""The order of events: settings, vendor, plugin, surfaces; idempotent, and rolled back on failure."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from . import _device_type, _environment, _settings, _startup, registry, rehearse
from ._context import Context
from ._patching import Ledger, iterate
from .failures import BackendUnavailableError, ConflictError, FlagosShimError
from .patches import IDENTITY_SURFACES, SURFACES
from .vendor import Vendor
from .vendors import RIVAL_SWITCHES

_log = logging.getLogger("flagos_shim")

# Seconds after which a plugin that is still starting is spoken of.
_SLOW = 30


class _Listening:
    """The level of the logger that FLAGOS_LOG_LEVEL asks for, and stderr for a program that has set up no logging."""

    def __init__(self, level: str | None) -> None:
        self._before = _log.level
        self._handler: logging.Handler | None = None
        if level is not None:
            _log.setLevel(level)
            self._handler = logging.StreamHandler()
            self._handler.setFormatter(logging.Formatter("flagos_shim %(levelname)s: %(message)s"))
            self._handler.addFilter(lambda _record: not logging.getLogger().handlers)
            _log.addHandler(self._handler)

    def undo(self) -> None:
        if self._handler is not None:
            _log.removeHandler(self._handler)
            _log.setLevel(self._before)


@dataclass
class Activation:
    """What is in force: the vendor, the shared context, the ledger, and the variables that were set."""

    vendor: Vendor
    ctx: Context
    ledger: Ledger
    how: str
    environment: _environment.Changes
    logging: _Listening


class _State:
    """The one activation of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.current: Activation | None = None
        self.left: Activation | None = None  # the last one, where some of its stand-ins are still below another's
        self.starting = False


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
    wanted = backend if backend is not None else _settings.BACKEND.read()
    vendor = None if wanted is None or wanted.strip().lower() == "auto" else registry.resolve(wanted)
    _import_torch()
    with STATE.lock:
        if STATE.starting:  # the plugin's own import asks for it again
            return
        active = STATE.current
        if active is None:
            STATE.starting = True
            try:
                STATE.current = _start(vendor)
            finally:
                STATE.starting = False
        elif vendor is not None and vendor.name != active.vendor.name:
            raise ConflictError(
                f"The back end {active.vendor.name!r} is active, {wanted!r} was asked for. One back end a process: "
                "call flagos_shim.deactivate() first."
            )


def _import_torch() -> None:
    """Import torch before the lock is taken: a thread that is importing torch may be on its way to the lock."""
    if "torch" in sys.modules:
        importlib.import_module("torch")
        return
    _startup.withdraw()  # what was asked for now counts, not what the environment says
    with _startup.AutoloadSetAside():
        importlib.import_module("torch")


def _start(chosen: Vendor | None) -> Activation:
    rehearsed = _settings.REHEARSE.read()
    if rehearsed is not None:
        rehearse.prepare(rehearsed, os.environ)
    listening = _Listening(_settings.LOG_LEVEL.read())
    changes = _environment.Changes()
    try:
        vendor, how = (chosen, "chosen") if chosen is not None else (registry.detect(rehearsed), "detected")
        _refuse_rivals(vendor)
        for setting in _settings.of_vendor(vendor):
            setting.read()  # what cannot be read is said before anything is started
        _environment.carry_over(vendor, changes)
        if _settings.STRICT.read():
            for name, value in vendor.strict.items():
                changes.set(name, value)
        module = _import_plugin(vendor)
        aliases = ("cuda", "flagos") if _settings.ALIAS_CUDA.read() and not vendor.identity else ("flagos",)
        left = STATE.left
        if left is not None and left.vendor is vendor and left.ctx.module is module:
            left.ctx.wake(aliases, changes)
            ctx, ledger = left.ctx, Ledger(left.ctx, reversed(left.ledger.left))
        else:
            ctx = Context(vendor, aliases, module, changes)
            ledger = Ledger(ctx)
        _device_type.internal.update(filter(None, (vendor.package, *vendor.own_packages)))
        try:
            with _collection_put_off():
                for surface in iterate(IDENTITY_SURFACES if vendor.identity else SURFACES):
                    if surface.name.startswith("cuda") and _settings.DISABLE_CUDA_SHIM.read():
                        continue
                    ledger.apply(surface)
                ledger.rebind(skip=_device_type.internal)
        except BaseException:
            ctx.close()
            ledger.undo()
            raise
        # Children that this process starts read the variable, whatever way this one was activated.
        changes.set(_settings.BACKEND.name, vendor.name)
    except BaseException:
        changes.undo()
        listening.undo()
        raise
    _log.log(
        logging.WARNING if how == "detected" and not vendor.indexed else logging.INFO,
        "`cuda` means %s (%s), %s.", vendor.name, vendor.title, how,
    )  # fmt: skip
    return Activation(vendor, ctx, ledger, how, changes, listening)


@contextlib.contextmanager
def _collection_put_off() -> Iterator[None]:
    """One pass of the garbage collector over all that torch has made takes several times as long as the patches."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _import_plugin(vendor: Vendor) -> object:
    """Import the vendor's plugin and return its device module (None for a vendor without one)."""
    if vendor.identity:
        _require_cuda(vendor)
    if vendor.package is not None:
        # Not looked for before: who provides a plugin in an unusual place may answer its import only, and only once.
        try:
            with _said_when_slow(vendor):
                importlib.import_module(vendor.package)
        except FlagosShimError:
            raise
        except Exception as error:  # plugins raise ImportError, RuntimeError and plain Exception from here
            if isinstance(error, ModuleNotFoundError) and error.name == vendor.package:
                raise registry.not_installed(vendor) from None
            library = (
                f" Is the vendor's SDK installed and its environment set ({vendor.probe.library})?"
                if vendor.probe.library
                else ""
            )
            raise BackendUnavailableError(
                f"The back end {vendor.name!r}: importing {vendor.package} failed: {error}.{library} "
                f"{registry.ADVICE.format(name=vendor.name)}"
            ) from error
    if vendor.namespace is None:
        return None
    module = sys.modules.get(vendor.namespace)
    if module is None:
        module_name, _, name = vendor.namespace.rpartition(".")
        if vendor.package is None:
            # A device module that this package brings, or torch itself, if it is new enough.
            with contextlib.suppress(ModuleNotFoundError):
                module = importlib.import_module(vendor.namespace)
        else:
            module = getattr(importlib.import_module(module_name), name, None)
    if module is None:
        raise BackendUnavailableError(
            f"The back end {vendor.name!r}: {vendor.package or 'torch'} was imported, but has no {vendor.namespace}. "
            f"{registry.ADVICE.format(name=vendor.name)}"
        )
    # Device files, where there are any, are asked instead of the driver, which is not to be started before it is used.
    known = vendor.identity or registry.has_device_files(vendor) or _hidden(vendor)
    with _said_when_slow(vendor):
        found = known or module.device_count()
    if not found:
        raise BackendUnavailableError(
            f"The back end {vendor.name!r}: {vendor.package or vendor.namespace} was imported, but finds no device on "
            f"this machine. {registry.ADVICE.format(name=vendor.name)}"
        )
    return module


@contextlib.contextmanager
def _said_when_slow(vendor: Vendor) -> Iterator[None]:
    """A plugin that hangs in this process cannot be stopped; say which one it is, where it lets other threads run."""
    text = "The back end %r: the plugin %s has been starting for %d s. Its driver may hang. %s"
    arguments = (text, vendor.name, vendor.package, _SLOW, registry.ADVICE.format(name=vendor.name))
    timer = threading.Timer(_SLOW, _log.warning, arguments)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _require_cuda(vendor: Vendor) -> None:
    import torch

    if torch.cuda.is_available() or (torch.backends.cuda.is_built() and _hidden(vendor)):
        return
    step = (
        "torch.cuda finds no device; is the driver loaded, and recent enough for this torch?"
        if torch.backends.cuda.is_built()
        else "it was built without it. Install a build of torch for this device."
    )
    raise BackendUnavailableError(
        f"The back end {vendor.name!r}: torch {torch.__version__} has no {vendor.title} device: {step} "
        f"{registry.ADVICE.format(name=vendor.name)}"
    )


def _hidden(vendor: Vendor) -> bool:
    """True where the environment says that a program is to see no card, or rehearses; then none is no failure."""
    if (_settings.REHEARSE.read() or "").lower() == vendor.name:
        return True
    return any(os.environ.get(name) in ("", "-1") for name in ("CUDA_VISIBLE_DEVICES", vendor.visible_devices or ""))


def _refuse_rivals(vendor: Vendor) -> None:
    for module, remedy in {**registry.conflicts(), **vendor.conflicts}.items():
        if module in sys.modules:
            raise ConflictError(f"{module} is active in this process and patches torch for the same purpose: {remedy}.")
    for variable, remedy in RIVAL_SWITCHES.items():
        if os.environ.get(variable, "0") not in ("0", ""):
            raise ConflictError(f"{variable} is set, and patches torch for the same purpose: {remedy}.")


def deactivate() -> list[str]:
    """Restore torch by identity, and the variables that activation set; what a rehearsal has loaded stays loaded.

    Returns:
        The targets that somebody else has patched on top since; those are left in place, and the stand-ins below them
        behave as torch's own.
    """
    _startup.withdraw()
    with STATE.lock:
        active, STATE.current = STATE.current, None
        if active is None:
            return []
        active.ctx.close()
        covered = active.ledger.undo()
        active.environment.undo()
        STATE.left = active if covered else None
        if covered:
            _log.warning("Left in place, since something else stands on top: %s", ", ".join(covered))
        active.logging.undo()
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
