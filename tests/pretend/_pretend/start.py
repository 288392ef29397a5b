"""The steps by which a plugin enters torch: rename, register, generate methods, collectives, version attribute."""

from __future__ import annotations

import sys
from datetime import timedelta
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from . import build
from .vendor import Vendor


def rename(vendor: Vendor) -> None:
    """Names the PrivateUse1 device. RuntimeError (torch's) if another plugin has named it."""
    torch.utils.rename_privateuse1_backend(vendor.name)


def register(vendor: Vendor, module: ModuleType) -> None:
    """Makes ``module`` be ``torch.<name>`` and gives tensors, modules and storages their methods."""
    torch._register_device_module(vendor.name, module)
    sys.modules[f"torch.{vendor.name}"] = module
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


def register_collectives(vendor: Vendor, module_name: str) -> None:
    """Adds the vendor's ``torch.distributed`` back end, its class and its ``is_<name>_available``."""
    device = build.load()

    def __init__(self: Any, store: Any, rank: int, size: int, timeout: Any = None) -> None:
        options = dist.ProcessGroupGloo._Options()
        options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
        options._timeout = timeout or timedelta(minutes=30)
        device.CollectiveBackend.__init__(self, dist.ProcessGroupGloo(store, rank, size, options), vendor.collective)

    group = type(vendor.process_group, (device.CollectiveBackend,), {"__init__": __init__, "__module__": module_name})

    def create(store: Any, rank: int, size: int, timeout: Any) -> Any:
        return group(store, rank, size, timeout)

    def available() -> bool:
        return True

    available.__name__ = available.__qualname__ = f"is_{vendor.collective}_available"
    dist.Backend.register_backend(vendor.collective, create, devices=[vendor.name])
    setattr(dist, vendor.process_group, group)
    setattr(dist, available.__name__, available)
