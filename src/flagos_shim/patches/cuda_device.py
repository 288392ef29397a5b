"""``torch.cuda``: what a device is and can do; never None where CUDA has a number."""

from __future__ import annotations

import functools
import uuid
import warnings
from typing import Any

from .._context import Context
from .._cuda_names import find, stand_in

_NO_UUID = uuid.UUID(int=0)


class DeviceProperties:
    """The vendor's properties under torch.cuda's names; what the vendor does not tell has a neutral value.

    Everything else that the vendor's own object has can be read from it too.
    """

    def __init__(self, vendor: Any, known: dict[str, Any]) -> None:
        """Args: vendor: its own object; known: torch.cuda's names, and what to answer where the vendor has None."""
        self.__dict__.update(_vendor=vendor, _known=known)

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__.get("_known", {})
        value = getattr(self.__dict__.get("_vendor"), name, None)
        if value is not None:
            return value
        if name in known:
            return known[name]
        raise AttributeError(f"the device's properties have no {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"can't set attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*self._known, *(n for n in dir(self._vendor) if not n.startswith("_"))})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceProperties) and other._vendor == self._vendor

    def __hash__(self) -> int:
        return hash((self.name, self.total_memory))

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 1024**2}MB, multi_processor_count={self.multi_processor_count})"
        )


def _capability(ctx: Context) -> tuple[int, int]:
    """The plugin's answer where it gives one (it may warn that it does not mean much), else the vendor's."""
    ask = find(ctx, "get_device_capability")
    if ask is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = ask()
        if answer is not None and all(isinstance(number, int) for number in answer[:2]):
            return answer[0], answer[1]
    return ctx.vendor.capability


@stand_in("torch.cuda:get_device_properties")
def get_device_properties(ctx: Context, original: Any) -> Any:
    """with `major`, `minor`, `multi_processor_count` and the rest of CUDA's, never None"""
    import torch

    ask = find(ctx, "get_device_properties")

    @functools.lru_cache(maxsize=64)
    def read(index: int) -> DeviceProperties:
        theirs = ask(index)
        total = theirs.total_memory
        major, minor = _capability(ctx)
        return DeviceProperties(
            theirs,
            {
                "name": ctx.vendor.title, "major": major, "minor": minor, "total_memory": total,
                "multi_processor_count": 1, "warp_size": 32, "max_threads_per_block": 1024,
                "max_threads_per_multi_processor": 2048, "regs_per_multiprocessor": 65536,
                "shared_memory_per_block": 49152, "shared_memory_per_block_optin": 101376,
                "shared_memory_per_multiprocessor": 102400, "L2_cache_size": 0, "is_integrated": 0,
                "is_multi_gpu_board": 0, "gcnArchName": "", "clock_rate": 0, "memory_clock_rate": 0,
                "memory_bus_width": 0, "uuid": _NO_UUID, "pci_bus_id": 0, "pci_device_id": 0, "pci_domain_id": 0,
            },
        )  # fmt: skip

    def get_device_properties(device: Any = None) -> Any:
        if not ctx.active:
            return original(device)
        torch.cuda._lazy_init()
        index = ctx.ordinal(device)
        if index is None:
            index = ctx.module.current_device()
        if not 0 <= index < torch.cuda.device_count():
            raise AssertionError("Invalid device id")
        return read(index)

    return get_device_properties


@stand_in("torch.cuda:_CudaDeviceProperties", verb="replace")
def properties_class(ctx: Context, original: Any) -> Any:
    """the class of what get_device_properties returns"""
    return DeviceProperties


@stand_in("torch.cuda:can_device_access_peer")
def can_device_access_peer(ctx: Context, original: Any) -> Any:
    """asked of the vendor; false where it cannot tell, and for a device and itself"""
    import torch

    ask = find(ctx, "can_device_access_peer")

    def can_device_access_peer(device: Any, peer_device: Any) -> bool:
        if not ctx.active:
            return bool(original(device, peer_device))
        torch.cuda._lazy_init()
        pair = []
        for value, kind in ((device, "device"), (peer_device, "peer device")):
            index = ctx.ordinal(value)
            index = ctx.module.current_device() if index is None else index
            if not 0 <= index < torch.cuda.device_count():
                raise AssertionError(f"Invalid {kind} id")
            pair.append(index)
        return pair[0] != pair[1] and ask is not None and bool(ask(*pair))

    return can_device_access_peer


@stand_in("torch.cuda:is_bf16_supported")
def is_bf16_supported(ctx: Context, original: Any) -> Any:
    """asked of the vendor, which does not emulate; a bool also where there is no device"""
    import torch

    ask = find(ctx, "is_bf16_supported")
    declared = "bfloat16" in ctx.vendor.amp_dtypes

    def is_bf16_supported(including_emulation: bool = True) -> bool:
        if not ctx.active:
            return bool(original(including_emulation))
        return torch.cuda.is_available() and (declared if ask is None else bool(ask()))

    return is_bf16_supported


@stand_in("torch.cuda:is_tf32_supported")
def is_tf32_supported(ctx: Context, original: Any) -> Any:
    """false: TF32 is NVIDIA's format"""
    ask = find(ctx, "is_tf32_supported")

    def is_tf32_supported() -> bool:
        if not ctx.active:
            return bool(original())
        return ask is not None and bool(ask())

    return is_tf32_supported


@stand_in("torch.cuda:get_arch_list")
def get_arch_list(ctx: Context, original: Any) -> Any:
    """empty: no CUDA architecture was compiled in"""

    def get_arch_list() -> list[str]:
        return [] if ctx.active else list(original())

    return get_arch_list
