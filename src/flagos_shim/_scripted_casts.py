"""``with torch.autocast("cuda")`` inside TorchScript: the kernels of the casts that its compiler inserts."""

from __future__ import annotations

from typing import Any

from ._context import Context

_REDUCED = "_autocast_to_reduced_precision"


class ScriptedCasts:
    """Kernels of the casts that TorchScript's autocast inserts, which torch itself has for its own devices only.

    An autocast for "cuda" in the script is in force for tensors of the vendor's device.
    """

    def __init__(self, ctx: Context) -> None:
        """Args: ctx: the activation; nothing is registered where it is CUDA's own, or where the plugin has kernels."""
        self._ctx = ctx
        self._library: Any = None

    def install(self) -> None:
        """Register the kernels."""
        import torch

        find = getattr(torch._C, "_dispatch_key_for_device", None)  # not in torch 2.1
        kind = self._ctx.vendor.device_type
        key = ("PrivateUse1" if self._ctx.vendor.indexed else "CPU") if find is None else find(kind)
        if self._ctx.vendor.identity or torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{_REDUCED}", key):
            return
        low, host = (torch.float16, torch.bfloat16), not self._ctx.vendor.indexed

        # On the vendor's device, an autocast for the CPU has no part in it, as in torch.
        def reduced(x: Any, cuda: bool, cpu: bool, cuda_dtype: Any, cpu_dtype: Any) -> Any:
            if x.dtype is not torch.float32 or not (cuda or (cpu and host)):
                return x
            return x.to(cuda_dtype if cuda else cpu_dtype)

        def full(x: Any, cuda: bool, cpu: bool) -> Any:
            return x.to(torch.float32) if x.dtype in low and (cuda or (cpu and host)) else x

        self._library = torch.library.Library("aten", "IMPL")
        for where in (key, f"Autograd{key}"):
            self._library.impl(_REDUCED, reduced, where)
            self._library.impl("_autocast_to_full_precision", full, where)

    def covered(self) -> bool:
        """Registrations do not lie on top of each other."""
        return False

    def restore(self) -> None:
        """Let torch's own be in force again."""
        self._library = None  # its finalizer takes the kernels back
