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

    group = device.CollectiveBackend  # itself, not a class below it: torch gives back what C++ knows
    begin = group.__init__

    def __init__(self: Any, store: Any, rank: int, size: int, timeout: Any = None) -> None:
        options = dist.ProcessGroupGloo._Options()
        options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
        options._timeout = timeout or timedelta(minutes=30)
        begin(self, dist.ProcessGroupGloo(store, rank, size, options), vendor.collective)

    class Options(torch._C._distributed_c10d.Backend.Options):
        """What CUDA's class has under this name: the timeout, and whether its streams have a high priority."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            super().__init__(vendor.collective)
            self.is_high_priority_stream = is_high_priority_stream

    group.__init__, group.Options = __init__, Options
    group.__name__ = group.__qualname__ = vendor.process_group
    group.__module__ = module_name

    def create(store: Any, rank: int, size: int, timeout: Any) -> Any:
        return group(store, rank, size, timeout)

    def available() -> bool:
        return True

    available.__name__ = available.__qualname__ = f"is_{vendor.collective}_available"
    dist.Backend.register_backend(vendor.collective, create, devices=[vendor.name])
    setattr(dist, vendor.process_group, group)
    setattr(dist, available.__name__, available)
