"""torch_npu's fused operators, computed on the host, with the derivatives that the real ones have.

What each computes is what torch_npu's documentation says of it; fp16 and bf16 are computed in fp32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .special import on_host

_WHOLE = 2147483647  # "no limit" of pre_tockens and next_tockens


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return F.linear(x, weight, bias)


def _rms_norm(x: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    axes = tuple(range(x.dim() - gamma.dim(), x.dim()))
    rstd = torch.rsqrt(x.float().pow(2).mean(axes, keepdim=True) + epsilon)
    return (x.float() * rstd * gamma.float()).to(x.dtype), rstd.detach()


def _add_rms_norm(x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> Any:
    total = x1 + x2
    return (*_rms_norm(total, gamma, epsilon), total)


def _layer_norm(
    x: torch.Tensor,
    normalized_shape: list[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    return F.layer_norm(x, normalized_shape, weight, bias, eps)


def _swiglu(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    gate, value = x.chunk(2, dim)
    return F.silu(gate) * value


def _rotary_mul(
    x: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, mode: str = "half", rotate: Any = None
) -> torch.Tensor:
    if mode != "half" or rotate is not None:
        raise NotImplementedError(
            "A rehearsal computes npu_rotary_mul for rotary_mode='half' and no rotate matrix only."
        )
    one, two = x.chunk(2, -1)
    return x * r1 + torch.cat((-two, one), -1) * r2


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    return F.gelu(x, approximate=approximate)


def _fast_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


def _heads(x: torch.Tensor, layout: str, heads: int) -> torch.Tensor:
    """Return ``x`` as batch, head, position, feature."""
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    x = x if layout == "BSH" else x.transpose(0, 1)
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _merged(x: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "BNSD":
        return x
    x = x.transpose(1, 2)
    if layout == "BSND":
        return x
    x = x.flatten(2)
    return x if layout == "BSH" else x.transpose(0, 1)


def _hidden(
    rows: int, columns: int, mask: torch.Tensor | None, before: int, after: int, mode: int
) -> torch.Tensor | None:
    """Return what a query may not see: True where a score is left out (sparse_mode 0 to 3 of the operator)."""
    if mode == 0 and (before < _WHOLE or after < _WHOLE):
        distance = torch.arange(columns) - torch.arange(rows)[:, None]
        band = (distance > after) | (distance < -before)
        return band if mask is None else band | mask.bool()
    if mode in (2, 3):  # causal, from the upper left or to the lower right; the mask that is given is a template
        return torch.ones(rows, columns, dtype=torch.bool).triu(1 if mode == 2 else 1 + columns - rows)
    return None if mask is None else mask.bool()


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    pse: torch.Tensor | None = None,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _WHOLE,
    next_tockens: int = _WHOLE,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    sparse_mode: int = 0,
    *_: Any,
    **__: Any,
) -> tuple[torch.Tensor, ...]:
    if input_layout not in ("BSH", "SBH", "BNSD", "BSND") or sparse_mode > 3 or actual_seq_qlen is not None:
        raise NotImplementedError(
            "A rehearsal computes npu_fusion_attention for the layouts BSH, SBH, BNSD and BSND and sparse_mode 0 to 3; "
            f"this is {input_layout} and {sparse_mode}."
        )
    q = _heads(query, input_layout, head_num).float()
    width = q.shape[-1]
    kv_heads = key.shape[-1] // width if input_layout in ("BSH", "SBH") else head_num
    k, v = (_heads(t, input_layout, kv_heads).float() for t in (key, value))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.mT * scale
    if pse is not None:
        scores = scores + pse.float()
    hidden = _hidden(q.shape[2], k.shape[2], atten_mask, pre_tockens, next_tockens, sparse_mode)
    if hidden is not None:
        scores = scores.masked_fill(hidden, torch.finfo(torch.float32).min)
    peak = scores.detach().amax(-1, keepdim=True)
    total = (scores.detach() - peak).exp().sum(-1, keepdim=True)
    weights = F.dropout(scores.softmax(-1), 1 - keep_prob) if keep_prob < 1 else scores.softmax(-1)
    out = _merged(weights @ v, input_layout).to(query.dtype)
    return out, peak.expand(*peak.shape[:-1], 8), total.expand(*total.shape[:-1], 8), torch.empty(0, dtype=query.dtype)


def _fusion_attention(*args: Any, **kwargs: Any) -> Any:
    return (*on_host(_attention)(*args, **kwargs), 0, 0, 0)  # seed, offset and count of the dropout mask


FUSED: dict[str, Callable[..., Any]] = {
    "npu_linear": on_host(_linear),
    "npu_rms_norm": on_host(_rms_norm),
    "npu_add_rms_norm": on_host(_add_rms_norm),
    "npu_layer_norm_eval": on_host(_layer_norm),
    "npu_swiglu": on_host(_swiglu),
    "npu_rotary_mul": on_host(_rotary_mul),
    "npu_gelu": on_host(_gelu),
    "npu_silu": on_host(F.silu),
    "fast_gelu": on_host(_fast_gelu),
    "npu_fast_gelu": on_host(_fast_gelu),
    "npu_fusion_attention": _fusion_attention,
}
