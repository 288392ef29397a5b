"""Runs operators on the NPU and on the CPU and prints, as JSON, which of them differ (forward or backward)."""

import json
import warnings

import torch
import torch.nn.functional as F
import torch_npu  # noqa: F401

warnings.simplefilter("ignore")
torch.manual_seed(0)
X, Y, P, S = torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 6) + 0.5, torch.rand(4, 6) * 0.8 + 0.1
IMAGE, SQUARE = torch.randn(2, 4, 8, 8), torch.randn(3, 5, 5)
POSITIVE = SQUARE @ SQUARE.mT + torch.eye(5)
I = torch.randint(0, 4, (4, 6))  # noqa: E741
C = torch.randn(4, 6, dtype=torch.complex64)

UNARY = """
    abs acos asin atan cosh sinh sin cos tan exp expm1 log log1p log2 log10 sqrt rsqrt reciprocal square neg
    sign sgn floor ceil round trunc frac tanh sigmoid erf erfc erfinv lgamma digamma isnan isfinite logical_not
    relu logit angle t flatten sum mean prod std var max min amax amin argmax argmin median any all norm isinf
    nan_to_num exp2 sinc positive clone contiguous numel tril triu diag trace rot90 fliplr flipud unique
    nonzero count_nonzero aminmax corrcoef cov hardshrink
"""
BINARY = """
    add sub mul div maximum minimum pow fmod remainder atan2 eq ne lt le gt ge logical_and logical_or
    logical_xor hypot fmax fmin floor_divide true_divide dist cdist allclose equal isclose copysign nextafter
    xlogy heaviside kron inner
"""
ACTIVATION = """
    relu relu6 elu selu celu gelu silu mish leaky_relu hardtanh hardswish hardsigmoid softplus softsign
    tanhshrink softshrink logsigmoid glu normalize
"""
LOSS = """
    mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits kl_div poisson_nll_loss
"""


def cases():
    for name in UNARY.split():
        yield name, lambda x, n=name: getattr(torch.Tensor, n)(x), (S,)
    for name in BINARY.split():
        yield (
            name,
            lambda x, y, n=name: getattr(torch, n)(x, y),
            (P, Y if name not in ("pow", "xlogy") else P.flip(0)),
        )
    for name in ACTIVATION.split():
        yield name, lambda x, n=name: getattr(F, n)(x), (X,)
    for name in LOSS.split():
        for reduction in ("mean", "sum", "none"):
            yield f"{name} {reduction}", lambda x, y, n=name, r=reduction: getattr(F, n)(x, y, reduction=r), (X, S)
    for name in (
        "inv",
        "det",
        "slogdet",
        "qr",
        "svdvals",
        "matrix_norm",
        "cholesky",
        "eigvalsh",
        "matrix_rank",
        "pinv",
    ):
        yield f"linalg.{name}", lambda x, n=name: getattr(torch.linalg, n)(x), (POSITIVE,)
    for name in ("fft", "ifft", "rfft", "fft2", "fftn", "hfft", "fftshift"):
        yield f"fft.{name}", lambda x, n=name: getattr(torch.fft, n)(x), (X,)
    for name in ("abs", "angle", "conj_physical", "exp", "sum", "mean", "real", "imag", "sqrt", "conj"):
        yield f"complex {name}", lambda x, n=name: getattr(torch, n)(x).resolve_conj(), (C,)
    yield from shapes()
    yield from indexing()
    yield from layers()
    yield from in_place()


def shapes():
    yield "complex product", lambda x, y: x * y.conj() @ x.mT, (C, C.flip(0))
    yield "imag of conj", lambda x: x.conj().imag + 1, (C,)
    yield "view_as_real", lambda x: torch.view_as_real(x) * 2, (C,)
    yield "matmul vectors", lambda x, y: x[0] @ y[0], (X, Y)
    yield "matmul vector matrix", lambda x, y: x[0] @ y.t(), (X, Y)
    yield "matmul batch", lambda x, y: x @ y[0], (SQUARE, POSITIVE)
    yield "einsum", lambda x, y: torch.einsum("bij,bkj->bik", x, y), (SQUARE, POSITIVE)
    yield "baddbmm", lambda x, y: torch.baddbmm(x, x, y, beta=0.5), (SQUARE, POSITIVE)
    yield "addmm", lambda x, y: torch.addmm(x[0], x, y.t()[:, :6] @ torch.ones(4, 6, device=x.device)), (X, Y)
    yield "tensordot", lambda x, y: torch.tensordot(x, y, dims=([1], [1])), (X, Y)
    yield "bilinear", lambda x, y, w: F.bilinear(x, y, w), (X, Y, torch.randn(3, 6, 6))
    yield "broadcast", lambda x, y: x[:, None] + y[None], (X, Y)
    yield "expand sum", lambda x: x[:1].expand(5, -1).sum(0), (X,)
    yield "permute reshape", lambda x: x.permute(2, 0, 1).reshape(5, -1) * 2, (SQUARE,)
    yield "rot90", lambda x: torch.rot90(x, 1, (0, 2)), (IMAGE,)
    yield "roll", lambda x: torch.roll(x, (1, -2), (0, 1)), (X,)
    yield "cat stack", lambda x, y: torch.cat([x, y, torch.stack([x[0], y[0]])]), (X, Y)
    yield "split chunk", lambda x: [a * 2 for a in (*x.split(2), *x.chunk(3, 1), *x.unbind(0))], (X,)
    yield (
        "pad",
        lambda x: [F.pad(x, (1, 2, 0, 1), mode=m) for m in ("constant", "reflect", "replicate", "circular")],
        (IMAGE,),
    )
    yield "repeat_interleave", lambda x: torch.repeat_interleave(x, 3, dim=1) + x.repeat(1, 3), (X,)
    yield "quantile", lambda x: torch.quantile(x, 0.3, dim=1), (X,)
    yield "sort topk", lambda x: [*x.sort(1), *x.topk(2, 1), x.argsort(1), *x.kthvalue(2, 1)], (X,)
    yield "cumulative", lambda x: [x.cumsum(1), x.cumprod(1), *x.cummax(1), x.logcumsumexp(1), x.diff(dim=1)], (X,)
    yield (
        "reductions",
        lambda x: [x.sum((0, 1)), x.mean(1, True), x.std(1), x.norm(dim=1), x.logsumexp(1), x.prod(1)],
        (X,),
    )
    yield "where clamp", lambda x, y: torch.where(x > 0, x, y).clamp(-1, 1) + x.clamp(min=y), (X, Y)
    yield (
        "lerp addcmul",
        lambda x, y: torch.lerp(x, y, 0.3) + torch.addcmul(x, x, y) + torch.addcdiv(x, y, y + 5),
        (X, Y),
    )
    yield "meshgrid", lambda x: list(torch.meshgrid(x[0], x[1], indexing="ij")), (X,)
    yield "histc bincount", lambda x: [torch.histc(x, 5), torch.bincount((x * 3).long().flatten().abs())], (X,)
    yield "searchsorted", lambda x: torch.searchsorted(x.sort(1)[0], x), (X,)
    yield "types", lambda x: [x.to(t) for t in (torch.float64, torch.int32, torch.bool, torch.uint8, torch.int64)], (S,)
    yield "half", lambda x: (x.half() + 1).float() + (x.bfloat16() * 2).float(), (X,)
    yield (
        "interpolate",
        lambda x: [F.interpolate(x, scale_factor=2, mode=m) for m in ("nearest", "bilinear", "bicubic", "area")],
        (IMAGE,),
    )
    yield (
        "grid_sample",
        lambda x: F.grid_sample(x, F.affine_grid(torch.eye(2, 3, device=x.device).expand(2, 2, 3), x.shape)),
        (IMAGE,),
    )
    yield "pixel_shuffle", lambda x: [F.pixel_shuffle(x, 2), F.unfold(x, 3), F.fold(F.unfold(x, 3), 8, 3)], (IMAGE,)
    yield "one_hot", lambda x: F.one_hot(x.argmax(1), 7), (X,)
    yield (
        "stft",
        lambda x: torch.stft(x.flatten(), 8, return_complex=True, window=torch.ones(8, device=x.device)).abs(),
        (X,),
    )


def indexing():
    yield "gather", lambda x: x.gather(0, I.to(x.device)), (X,)
    yield "take_along_dim", lambda x: torch.take_along_dim(x, I.to(x.device), 0) + x.take(I.to(x.device)), (X,)
    yield "scatter", lambda x, y: x.scatter(0, I.to(x.device), y), (X, Y)
    yield "scatter_add", lambda x, y: x.scatter_add(0, I.to(x.device), y), (X, Y)
    yield "scatter_reduce", lambda x, y: x.scatter_reduce(0, I.to(x.device), y, "amax"), (X, Y)
    yield "index_select", lambda x: x.index_select(0, I[0].to(x.device)), (X,)
    yield "index_add", lambda x, y: x.index_add(0, torch.tensor([1, 0, 1, 3], device=x.device), y), (X, Y)
    yield (
        "index_put",
        lambda x, y: x.index_put((torch.tensor([1, 0], device=x.device),), y[:2], accumulate=True),
        (X, Y),
    )
    yield "mask", lambda x, y: [x[x > 0], x.masked_fill(y > 0, 2.0), torch.masked_select(x, y > 0)], (X, Y)
    yield "CPU index", lambda x: x[torch.tensor([2, 0])] + x[[1, 3]], (X,)
    yield "embedding", lambda w: F.embedding(I.to(w.device), w, padding_idx=1), (X,)
    yield "embedding_bag", lambda w: F.embedding_bag(I.to(w.device), w, mode="mean"), (X,)


def layers():
    weight, bias = torch.randn(6, 4, 3, 3), torch.randn(6)
    yield "conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1, stride=2), (IMAGE, weight, bias)
    yield "conv2d groups", lambda x, w: F.conv2d(x, w[:4, :1], groups=4, dilation=2), (IMAGE, weight)
    yield "conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1), stride=2), (IMAGE, weight)
    yield "conv1d", lambda x, w: F.conv1d(x[:, :, 0], w[:, :, 0]), (IMAGE, weight)
    yield "conv3d", lambda x, w: F.conv3d(x[None], w[:, :2, None]), (IMAGE, weight)
    for name in ("max_pool2d", "avg_pool2d", "lp_pool2d"):
        yield name, lambda x, n=name: getattr(F, n)(x, *((2.0, 2) if n == "lp_pool2d" else (2,))), (IMAGE,)
    yield "adaptive pools", lambda x: [F.adaptive_avg_pool2d(x, 3), F.adaptive_max_pool2d(x, 3)], (IMAGE,)
    yield "max_pool2d with indices", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (IMAGE,)
    yield "batch_norm", lambda x: F.batch_norm(x, None, None, training=True), (IMAGE,)
    yield "group_norm", lambda x: F.group_norm(x, 2), (IMAGE,)
    yield "instance_norm", lambda x: F.instance_norm(x), (IMAGE,)
    yield "layer_norm", lambda x, y: F.layer_norm(x, (6,), y[0], y[1]), (X, Y)
    yield "rms_norm", lambda x, y: F.rms_norm(x, (6,), y[0]), (X, Y)
    yield "local_response_norm", lambda x: F.local_response_norm(x, 2), (IMAGE,)
    yield "linear", lambda x, y: F.linear(x, y, y[:, 0]), (X, Y)
    yield (
        "softmaxes",
        lambda x: [F.softmax(x, 1), F.log_softmax(x, 0), F.softmin(x, 1), F.gumbel_softmax(x).sum(1)],
        (X,),
    )
    yield "cross_entropy", lambda x: F.cross_entropy(x, I[:, 0].to(x.device), label_smoothing=0.1), (X,)
    yield "nll_loss", lambda x: F.nll_loss(F.log_softmax(x, 1), I[:, 0].to(x.device), ignore_index=1), (X,)
    yield "bce", lambda x, y: F.binary_cross_entropy(x, y), (S, S.flip(0))
    yield (
        "margin losses",
        lambda x, y: [
            F.cosine_embedding_loss(x, y, torch.ones(4, device=x.device)),
            F.triplet_margin_loss(x, y, x.flip(0)),
            F.margin_ranking_loss(x[:, 0], y[:, 0], torch.ones(4, device=x.device)),
            F.multi_margin_loss(x, I[:, 0].to(x.device)),
            F.hinge_embedding_loss(x, torch.ones_like(y)),
            F.gaussian_nll_loss(x, y, torch.ones_like(x)),
            F.soft_margin_loss(x, torch.ones_like(y)),
        ],
        (X, Y),
    )
    yield "cosine_similarity", lambda x, y: [F.cosine_similarity(x, y), F.pairwise_distance(x, y), F.pdist(x)], (X, Y)
    for kind in ("long", "int"):
        lengths = [torch.tensor([9, 8], dtype=getattr(torch, kind)), torch.tensor([3, 2], dtype=getattr(torch, kind))]
        targets = torch.tensor([[1, 2, 3], [2, 4, 1]])
        yield (
            f"ctc_loss {kind}",
            lambda x, n=lengths, t=targets: F.ctc_loss(x.log_softmax(-1), t.to(x.device), *n),
            (torch.randn(9, 2, 5),),
        )
    for causal in (False, True):
        yield (
            f"attention causal={causal}",
            lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c),
            (*torch.randn(3, 2, 3, 5, 8),),
        )


def in_place():
    def several(x, y):
        z = x.clone()
        z += y
        z.mul_(2).clamp_(-3, 3).sub_(1).tanh_()
        z[1] = 0.5
        z[:, 2] += y[:, 2]
        z.t_().unsqueeze_(0).squeeze_(0).transpose_(0, 1)
        z.masked_fill_(y > 1, 0).zero_() if z.numel() == 0 else z.index_fill_(
            0, torch.tensor([0], device=x.device), 3.0
        )
        return z

    def out(x, y):
        with torch.no_grad():
            a, b = torch.empty(0, device=x.device), torch.empty(4, 6, device=x.device)
            torch.add(x, y, out=a)
            torch.mul(x, y, out=b)
            values, indices = torch.empty(0, device=x.device), torch.empty(0, dtype=torch.long, device=x.device)
            torch.sort(x, out=(values, indices))
            torch.cat([x, y], out=torch.empty(0, device=x.device))
            return [a, b, values, indices]

    yield "in place", several, (X, Y)
    yield "out=", out, (X, Y)
    yield "empty tensors", lambda x: [x[:0].sum(), torch.cat([x[:0], x]), x[:0] @ x.t(), x[:0].mean(1)], (X,)
    yield "zero dimensions", lambda x: [x[0, 0] * 2, x.sum() + x, x[0, 0].exp(), x.mean().sqrt()], (P,)
    yield (
        "factories",
        lambda x: [
            torch.arange(5, device=x.device),
            torch.linspace(0, 1, 5, device=x.device),
            torch.eye(3, device=x.device),
            torch.full((2,), 3.5, device=x.device),
            torch.zeros_like(x),
            torch.ones(2, 2, device=x.device),
            torch.tril_indices(3, 3, device=x.device),
            torch.logspace(0, 1, 3, device=x.device),
            x.new_full((2,), 7),
            torch.hann_window(5, device=x.device),
            torch.tensor([1, 2], device=x.device),
            x.new_tensor([1.0]),
        ],
        (X,),
    )


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (list, tuple)) else []


# The CPU has no derivative for these, or not for these arguments.
FORWARD_ONLY = ("unique", "floor_divide", "heaviside", "in place")


def run(function, inputs, device, backward):
    given = [t.detach().clone().to(device).requires_grad_(backward) for t in inputs]
    result = function(*given)
    outputs = leaves(result) or [torch.tensor(result)]
    scalars = [o.abs().sum() if o.is_complex() else o.sum() for o in outputs if o.requires_grad]
    grads = torch.autograd.grad(scalars, given, allow_unused=True) if scalars else []
    return [t if t is None else t.detach() for t in (*outputs, *grads)]


def main():
    different, done = {}, 0
    for name, function, inputs in cases():
        done += 1
        try:
            want, got = (run(function, inputs, device, name not in FORWARD_ONLY) for device in ("cpu", "npu"))
            if name == "softmaxes":
                want, got = want[:3], got[:3]  # the fourth draws random numbers
            assert len(want) == len(got)
            for a, b in zip(want, got):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(b.cpu(), a, rtol=1e-4, atol=1e-5, equal_nan=True)
        except Exception as error:
            different[name] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps({"done": done, "different": different}))


main()
