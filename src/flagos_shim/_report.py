"""Status as plain data: what is active, what was patched and why, what was skipped."""

from __future__ import annotations

import sys
from typing import Any

from . import _activation, _startup
from ._version import __version__


def plugin_version(package: str | None) -> str | None:
    """The version the imported plugin gives itself."""
    module = sys.modules.get(package) if package else None
    return getattr(module, "__version__", None)


def status() -> dict[str, Any]:
    """The state of this process.

    Returns:
        ``active``, ``waiting`` (activation comes with the import of torch), ``autoload_set_aside`` (torch was kept from
        loading every installed plugin, by TORCH_DEVICE_BACKEND_AUTOLOAD) and ``adapter_version``; while active also
        ``backend``, ``title``, ``how`` (chosen or detected), ``plugin``, ``plugin_version``, ``device_type``,
        ``torch_device`` (how ``torch.device`` is kept), ``environment`` (CUDA variable -> vendor's), ``dropped``
        (CUDA variable -> options that have no counterpart), ``patches`` (target, surface, reason, state), ``skipped``,
        ``failures`` and ``fallbacks`` (operator -> how often the plugin said that it computes it on the CPU; it says so
        once an operator).
    """
    active = _activation.current()
    common = {
        "active": active is not None,
        "waiting": _startup.waiting(),
        "autoload_set_aside": _startup.autoload_was_set_aside(),
        "adapter_version": __version__,
    }
    if active is None:
        return common
    return {
        **common,
        "backend": active.vendor.name,
        "title": active.vendor.title,
        "how": active.how,
        "plugin": active.vendor.package,
        "plugin_version": plugin_version(active.vendor.package),
        "device_type": active.vendor.device_type,
        "torch_device": active.ledger.skipped.get("torch:device", "same type, constructor replaced"),
        "environment": dict(active.environment.carried),
        "dropped": {name: list(options) for name, options in active.environment.dropped.items()},
        "patches": [
            {"target": e.target, "surface": e.surface, "why": e.why, "state": "covered" if e.covered() else "active"}
            for e in list(active.ledger.entries)
        ],
        "skipped": dict(active.ledger.skipped),
        "failures": dict(active.ledger.failures),
        "fallbacks": dict(active.ctx.fallbacks),
    }


def flagos_info() -> dict[str, Any]:
    """What this process runs on; the function behind ``torch.flagos_info()``.

    Returns:
        ``backend``, ``adapter_version``, ``plugin``, ``plugin_version``, ``torch_version``, ``device_type``,
        ``device_count``, ``toolkit_version``; an empty dictionary when nothing is active.
    """
    active = _activation.current()
    if active is None:
        return {}
    import torch

    return {
        "backend": active.vendor.name,
        "adapter_version": __version__,
        "plugin": active.vendor.package,
        "plugin_version": plugin_version(active.vendor.package),
        "torch_version": str(torch.__version__),
        "device_type": active.vendor.device_type,
        "device_count": active.ctx.shown_module.device_count(),
        "toolkit_version": getattr(torch.version, active.vendor.toolkit or "", None),
    }
