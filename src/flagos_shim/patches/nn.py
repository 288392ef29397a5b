"""``torch.nn``: shortcuts of torch's own modules that the vendor's plugin has no operators for."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._patching import Surface

surface = Surface("nn")
surface.forget(
    "torch.overrides:get_overridable_functions.cache_clear",
    "torch.overrides:_get_overridable_functions.cache_clear",
    "torch.overrides:get_testing_overrides.cache_clear",
)

_LEFT_ALIGNED = "_nested_tensor_from_mask_left_aligned"


@surface.wrap(f"torch:{_LEFT_ALIGNED}", also=(f"torch._C:_VariableFunctionsClass.{_LEFT_ALIGNED}",), optional=True)
def left_aligned(ctx: Context, original: Any) -> Any:
    """`TransformerEncoder` leaves padding in its input, where the plugin cannot compute a layer on a nested tensor."""
    import torch

    if ctx.device_type != torch._C._get_privateuse1_backend_name():
        return original
    layer, key = "aten::_transformer_encoder_layer_fwd", "NestedTensorPrivateUse1"
    if layer in torch._C._dispatch_get_registrations_for_dispatch_key(key):
        return original

    # The encoder asks this before it makes a nested tensor of its input and its mask of padding.
    def _nested_tensor_from_mask_left_aligned(t: Any, mask: Any) -> bool:
        return False if ctx.owns(t.device) else bool(original(t, mask))

    return _nested_tensor_from_mask_left_aligned
