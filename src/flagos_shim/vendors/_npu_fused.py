"""torch_npu's fused operators for torch's functions, with the conditions under which each applies.

Attested by torch_npu's documentation of npu_linear (fp16, a matrix by a matrix) and npu_layer_norm_eval (no derivative;
announced there as to be withdrawn, so it may be missing), and by their schemas in torch_npu 2.13.0.
"""

from __future__ import annotations

import logging
from typing import Any, Callable

_log = logging.getLogger("flagos_shim")


def _applies(device_type: str, *tensors: Any) -> bool:
    """True for plain fp16 tensors on the device, computed at once: not under a compiler, a tracer or a transform."""
    import torch

    return (
        all(
            tensor.__class__ in (torch.Tensor, torch.nn.Parameter)
            and tensor.dtype is torch.float16
            and torch.Tensor.device.__get__(tensor).type == device_type
            and tensor.numel()
            for tensor in tensors
        )
        and not torch.jit.is_tracing()
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch.autograd.forward_ad._current_level < 0
        and not (torch._C._is_torch_function_mode_enabled() and _watched())
    )


def _watched() -> bool:
    """True under a mode that is to see torch's functions; that of a default device only looks at factories."""
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._device import DeviceContext

    return any(mode.__class__ is not DeviceContext for mode in _get_current_function_mode_stack())


def _operator(name: str, variable: str) -> Any:
    import torch_npu

    found = getattr(torch_npu, name, None)
    if found is None:
        _log.warning("%s has no effect: torch_npu %s has no %s.", variable, torch_npu.__version__, name)
    return found


def linear(device_type: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.nn.functional.linear`` by ``npu_linear``, which takes matrices: leading dimensions become one."""
    import torch

    fused = _operator("npu_linear", "FLAGOS_ASCEND_FUSED_LINEAR")
    if fused is None:
        return original

    def linear(input: Any, weight: Any, bias: Any = None) -> Any:
        if torch.compiler.is_compiling():
            return original(input, weight, bias)
        given = (input, weight) if bias is None else (input, weight, bias)
        # A wrong shape gets torch's own error.
        fits = (
            _applies(device_type, *given)
            and (not torch.is_autocast_enabled() or torch.get_autocast_gpu_dtype() is torch.float16)
            and input.dim() >= 2
            and weight.dim() == 2
            and input.shape[-1] == weight.shape[1]
            and (bias is None or bias.shape == weight.shape[:1])
            and len({tensor.device for tensor in given}) == 1
        )
        if not fits:
            return original(input, weight, bias)
        if input.dim() == 2:
            return fused(input, weight, bias)
        return fused(input.reshape(-1, input.shape[-1]), weight, bias).view(*input.shape[:-1], -1)

    return linear


def layer_norm(device_type: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.layer_norm``, behind all of torch's, by ``npu_layer_norm_eval`` where no gradient is asked for."""
    import torch

    fused = _operator("npu_layer_norm_eval", "FLAGOS_ASCEND_FUSED_LAYERNORM")
    if fused is None:
        return original

    def layer_norm(
        input: Any,
        normalized_shape: Any,
        weight: Any = None,
        bias: Any = None,
        eps: float = 1e-5,
        cudnn_enable: bool = True,
    ) -> Any:
        if torch.compiler.is_compiling() or weight is None or bias is None:
            return original(input, normalized_shape, weight, bias, eps, cudnn_enable)
        given = (input, weight, bias)
        shape = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else ()
        fits = (
            _applies(device_type, *given)
            and not torch.is_autocast_enabled()  # which has torch compute it in float32
            and not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given))
            and bool(shape)
            and shape == input.shape[-len(shape) :] == weight.shape == bias.shape
            and len({tensor.device for tensor in given}) == 1
        )
        if not fits:
            return original(input, normalized_shape, weight, bias, eps, cudnn_enable)
        return fused(input, list(shape), weight, bias, eps)

    return layer_norm
