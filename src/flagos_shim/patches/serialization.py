"""``torch.save`` and ``torch.load``: files say ``cuda:N``, whoever wrote them."""

from __future__ import annotations

import re
from typing import Any

from .._context import Context
from .._patching import Surface

surface = Surface("serialization")

# Asked before torch's own entries (10 for the CPU, 20 for CUDA) and the plugin's.
_PRIORITY = 5
# The tags that CUDA and the vendors' plugins write, so that a file of any of them loads here.
_TAG = re.compile(r"(?:cuda|flagos|npu|mlu|musa|gcu|xpu|hpu|mps|privateuseone)(?::(\d+))?")


@surface.enrol("torch.serialization:_package_registry")
def location(ctx: Context, _registry: Any) -> Any:
    """Storages of the vendor's device are saved with the tag `cuda:N`; tags of any accelerator load onto it."""

    def tag(storage: Any) -> str | None:
        if not ctx.owns(storage.device):
            return None
        index = storage.device.index
        return "cuda" if index is None else f"cuda:{index}"

    def restore(storage: Any, where: Any) -> Any:
        found = _TAG.fullmatch(where) if isinstance(where, str) else None
        if found is None:
            return None
        if not ctx.vendor.indexed:
            return storage
        index = None if found[1] is None else int(found[1])
        count = ctx.module.device_count()
        if index is not None and index >= count:
            raise RuntimeError(
                f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {count}. "
                "Please use torch.load with map_location to map your storages to an existing device."
            )
        return storage.to(device=ctx.make_device(index))

    return _PRIORITY, tag, restore
