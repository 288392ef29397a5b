"""The operator library of the host-memory NPU: every aten kernel that torch_npu registers, computed on the host.

torch_npu's own kernels call CANN's libopapi.so, which exists only beside real hardware. :func:`install` replaces each
of them. Allocation, views, storages, streams, events and the caching allocator stay torch_npu's own, and an operator
that torch_npu does not register takes its own fallback to the CPU, with its own warning, as on a real NPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import special
from .kernels import kernel

# Left to torch_npu: these make or view storage rather than compute.
STORAGE = frozenset(
    ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_with_format", "as_strided", "view")
    + ("_reshape_alias", "unfold", "squeeze", "view_as_real", "view_as_complex", "_copy_from", "_copy_from_and_resize")
    + ("to", "resize_", "resize_as_", "_resize_output_", "set_", "is_set_to", "data", "record_stream", "is_pinned")
    + ("_local_scalar_dense", "pin_memory", "_pin_memory", "_lazy_clone", "_has_compatible_shallow_copy_type")
    + ("resize_as_sparse_", "as_strided_", "squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "detach_")
)
SPECIAL: dict[str, Callable[..., Any]] = {
    "native_dropout": special.native_dropout,
    "matmul_backward": special.matmul_backward,
    "copy_": special.copy_,
    "_to_copy": special.to_copy,
    "clone": special.clone,
}
# torch_npu gives these a derivative of its own, made of operators that do not exist here.
DIFFERENTIABLE = (
    *("lstm.input", "lstm.data", "gru.input", "gru.data", "lstm_cell", "gru_cell"),
    *("scaled_dot_product_attention", "_weight_norm", "stft", "binary_cross_entropy_with_logits", "kl_div", "l1_loss"),
    *("renorm", "repeat_interleave.self_Tensor", "repeat_interleave.self_int"),
)
_OVERRIDE = {"allow_override": True} if "allow_override" in inspect.signature(torch.library.Library.impl).parameters else {}
_libraries: list[torch.library.Library] = []


def _cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return special.to_copy(x, dtype=dtype)


def _same(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return x  # host memory has one format


PLUGIN: dict[str, Callable[..., Any]] = {
    "npu_format_cast": _same,
    "npu_format_cast_": _same,
    "npu_dtype_cast": _cast,
    "_npu_dtype_cast": _cast,
}


def _overload(qualified: str) -> torch._ops.OpOverload[..., Any] | None:
    name, _, overload = qualified.partition(".")
    return getattr(getattr(torch.ops.aten, name, None), overload or "default", None)


def _is_view(op: torch._ops.OpOverload[..., Any]) -> bool:
    return any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns)


def install(unsupported: Iterable[str] = ()) -> int:
    """Replace torch_npu's aten kernels, once a process; return how many.

    The kernels of the operators named ``unsupported`` (``softmax``, ``_softmax.out``) stay torch_npu's own, and so
    fail as they do on a CANN release without that operator.
    """
    if _libraries:
        return 0
    skip = STORAGE | set(unsupported)
    aten, npu = (torch.library.Library(namespace, "IMPL") for namespace in ("aten", "npu"))
    _libraries.extend((aten, npu))
    registered = {
        key: set(torch._C._dispatch_get_registrations_for_dispatch_key(key)) for key in ("PrivateUse1", "AutogradPrivateUse1")
    }
    for name, function in PLUGIN.items():
        for overload in getattr(torch.ops.npu, name).overloads() if hasattr(torch.ops.npu, name) else ():
            npu.impl(name if overload == "default" else f"{name}.{overload}", function, "PrivateUse1", **_OVERRIDE)
    count = 0
    for qualified in registered["PrivateUse1"]:
        namespace, name = qualified.split("::", 1)
        base = name.partition(".")[0]
        if namespace != "aten" or base in skip or name in skip or name in DIFFERENTIABLE or base == "contiguous":
            continue
        op = _overload(name)
        if op is None or _is_view(op):
            continue
        aten.impl(name, SPECIAL.get(name) or kernel(op, base), "PrivateUse1", **_OVERRIDE)
        count += 1
    for name in DIFFERENTIABLE:
        op = _overload(name)
        if op is not None and name not in skip and name.partition(".")[0] not in skip:
            function = special.differentiable(op)
            for key in registered:
                aten.impl(name, function, key, **_OVERRIDE)
    for key, names in registered.items():
        if "aten::contiguous" in names:
            aten.impl("contiguous", special.contiguous, key, **_OVERRIDE)
    return count
