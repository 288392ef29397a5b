"""torch_npu's fused operators give what the plain ones give, in fp16 too, and have derivatives."""

from __future__ import annotations

from .conftest import Run


def test_fused_operators_agree_with_plain_ones(run: Run) -> None:
    code = """
        import torch, torch_npu, torch.nn.functional as F

        def compare(fused, plain, *inputs, backward=True):
            for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-2)):
                results = []
                for function, device in ((fused, "npu"), (plain, "cpu")):
                    wide = torch.float32 if device == "cpu" else dtype
                    given = [t.detach().clone().to(dtype).to(device, wide).requires_grad_(backward) for t in inputs]
                    out = function(*given)
                    grads = torch.autograd.grad(out.float().pow(2).sum(), given) if backward else []
                    results.append([out, *grads])
                assert results[0][0].dtype is dtype and results[0][0].device.type == "npu"
                for a, b in zip(*results):
                    torch.testing.assert_close(a.detach().cpu().float(), b.detach(), rtol=tolerance, atol=tolerance * 5)

        torch.manual_seed(0)
        x, w, b, g = torch.randn(4, 6), torch.randn(5, 6), torch.randn(5), torch.rand(6)
        compare(torch_npu.npu_linear, F.linear, x, w, b)
        compare(lambda x, g: torch_npu.npu_rms_norm(x, g, epsilon=1e-5)[0], lambda x, g: F.rms_norm(x, (6,), g, 1e-5), x, g)
        compare(lambda x, g: torch_npu.npu_layer_norm_eval(x, (6,), g, g), lambda x, g: F.layer_norm(x, (6,), g, g), x, g,
                backward=False)
        compare(torch_npu.npu_swiglu, lambda x: F.silu(x[:, :3]) * x[:, 3:], x)
        q, k, v = torch.randn(3, 2, 4, 5, 8)

        def fused(layout, **options):
            def change(t):
                return {"BNSD": t, "BSND": t.transpose(1, 2), "BSH": t.transpose(1, 2).flatten(2),
                        "SBH": t.transpose(1, 2).flatten(2).transpose(0, 1)}[layout]

            def back(t):
                t = t.transpose(0, 1) if layout == "SBH" else t
                t = t.unflatten(-1, (4, 8)) if layout in ("BSH", "SBH") else t
                return t if layout == "BNSD" else t.transpose(1, 2)

            return lambda *t: back(torch_npu.npu_fusion_attention(*map(change, t), 4, layout, scale=8 ** -0.5, **options)[0])

        hidden = torch.ones(5, 5, dtype=torch.bool).triu(1).npu()
        causal = lambda *t: F.scaled_dot_product_attention(*t, is_causal=True)
        for layout in ("BNSD", "BSND", "BSH", "SBH"):
            compare(fused(layout), F.scaled_dot_product_attention, q, k, v)
            compare(fused(layout, atten_mask=hidden), causal, q, k, v)
        compare(fused("BNSD", sparse_mode=2, atten_mask=hidden), causal, q, k, v)
        compare(fused("BNSD", sparse_mode=3, atten_mask=hidden), causal, q, k, v)
        compare(fused("BNSD", pre_tockens=9, next_tockens=0), causal, q, k, v)
        print("agree")
    """
    assert run(code).stdout.splitlines()[-1] == "agree"
