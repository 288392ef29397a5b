"""The operator library of the host-memory NPU: every aten kernel that torch_npu registers, computed on the host.

torch_npu's own kernels call CANN's libopapi.so, which exists only beside real hardware. :func:`install` replaces each
of them. Allocation, views, storages, streams, events and the caching allocator stay torch_npu's own, and an operator
that torch_npu does not register takes its own fallback to the CPU, with its own warning, as on a real NPU.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..options import FAIL
from . import special
from .failures import Failures
from .fused import FUSED
from .kernels import kernel

# Left to torch_npu: these make or view storage rather than compute.
STORAGE = frozenset(
    (
        *("empty", "empty_strided", "new_empty", "new_empty_strided", "empty_with_format", "view"),
        *("as_strided", "_reshape_alias", "unfold", "squeeze", "view_as_real", "view_as_complex", "_copy_from"),
        *("_copy_from_and_resize", "to", "resize_", "resize_as_", "_resize_output_", "set_", "is_set_to", "data"),
        *("record_stream", "is_pinned", "_local_scalar_dense", "pin_memory", "_pin_memory", "_lazy_clone"),
        *("_has_compatible_shallow_copy_type", "resize_as_sparse_", "as_strided_", "squeeze_", "unsqueeze_"),
        *("transpose_", "t_", "swapaxes_", "swapdims_", "detach_"),
    )
)
SPECIAL: dict[str, Callable[..., Any]] = {
    "native_dropout": special.native_dropout,
    "_pack_padded_sequence": special.pack_padded_sequence,
    "copy_": special.copy_,
    "_to_copy": special.to_copy,
    "clone": special.clone,
    "empty_like": special.empty_like,
}
# torch_npu gives these a derivative of its own, made of operators that do not exist here. The first are computed by the
# CPU's operator and its derivative, the second are taken apart into simpler operators, as torch does by itself.
ON_HOST = (
    *("lstm.input", "lstm.data", "gru.input", "gru.data", "lstm_cell", "gru_cell", "scaled_dot_product_attention"),
    *("binary_cross_entropy_with_logits", "renorm"),
)
TAKEN_APART = (
    *("matmul", "kl_div", "l1_loss", "one_hot", "repeat_interleave.self_Tensor", "repeat_interleave.self_int", "stft"),
    *("_weight_norm", "log_sigmoid", "cdist", "pdist", "_pad_packed_sequence"),
)
_KNOWS_OVERRIDE = "allow_override" in inspect.signature(torch.library.Library.impl).parameters
_OVERRIDE = {"allow_override": True} if _KNOWS_OVERRIDE else {}
_KEYS = ("PrivateUse1", "AutogradPrivateUse1")
OWN_DERIVATIVE = (*ON_HOST, *TAKEN_APART, "contiguous")
_libraries: list[torch.library.Library] = []


def _cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return special.to_copy(x, dtype=dtype)


def _same(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return x  # host memory has one format


# The same kernels serve sparse tensors, by their parts.
SPARSE = ("_coalesce", "sparse_mask", "mul.Tensor")
PLUGIN: dict[str, Callable[..., Any]] = {
    "npu_format_cast": _same,
    "npu_format_cast_": _same,
    "npu_dtype_cast": _cast,
    "_npu_dtype_cast": _cast,
}


def _overload(qualified: str) -> torch._ops.OpOverload[..., Any] | None:
    name, _, overload = qualified.partition(".")
    return getattr(getattr(torch.ops.aten, name, None), overload or "default", None)


def _whole(op: torch._ops.OpOverload[..., Any], name: str) -> Callable[..., Any]:
    """Return what stands for an operator and its derivative together."""
    if name == "contiguous":
        return special.contiguous
    return op.decompose if name in TAKEN_APART else special.differentiable(op)


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
    registered = {key: set(torch._C._dispatch_get_registrations_for_dispatch_key(key)) for key in _KEYS}
    for name, function in PLUGIN.items():
        for overload in getattr(torch.ops.npu, name).overloads() if hasattr(torch.ops.npu, name) else ():
            npu.impl(name if overload == "default" else f"{name}.{overload}", function, "PrivateUse1", **_OVERRIDE)
    for name, function in FUSED.items():
        if hasattr(torch.ops.npu, name) and name not in skip:
            for key, names in registered.items():
                if f"npu::{name}" in names:
                    npu.impl(name, function, key, **_OVERRIDE)
    failures = Failures(os.environ.get(FAIL, ""))
    count = 0
    for qualified in registered["PrivateUse1"]:
        namespace, name = qualified.split("::", 1)
        base = name.partition(".")[0]
        if namespace != "aten" or base in skip or name in skip or name in OWN_DERIVATIVE:
            continue
        op = _overload(name)
        if op is None or _is_view(op):
            continue
        function = SPECIAL.get(name) or kernel(op, base)
        if failures:
            function = failures.wrap(name, function)
        aten.impl(name, function, "PrivateUse1", **_OVERRIDE)
        count += 1
    for name in OWN_DERIVATIVE:
        op = _overload(name)
        if op is None or name in skip or name.partition(".")[0] in skip:
            continue
        function = _whole(op, name)
        if failures:
            function = failures.wrap(name, function)
        for key, names in registered.items():
            if f"aten::{name}" in names or name in ON_HOST:
                aten.impl(name, function, key, **_OVERRIDE)
    for name in SPARSE:
        op = _overload(name)
        if op is not None and name not in skip:
            aten.impl(name, kernel(op, name.partition(".")[0]), "SparsePrivateUse1", **_OVERRIDE)
    return count
