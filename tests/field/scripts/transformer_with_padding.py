# Must hold: TransformerEncoder in eval mode with a padding mask runs and agrees with the CPU where there is no padding.
import copy
import warnings

import torch

warnings.simplefilter("ignore")
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
cpu = torch.nn.TransformerEncoder(layer, 2).eval()
gpu = copy.deepcopy(cpu).cuda()
x = torch.randn(2, 3, 8)
pad = torch.tensor([[False, False, True], [False, False, False]])
for context in (torch.no_grad, torch.inference_mode):
    with context():
        want = cpu(x, src_key_padding_mask=pad)
        got = gpu(x.cuda(), src_key_padding_mask=pad.cuda())
        assert got.device == x.cuda().device and got.shape == want.shape
        assert torch.allclose(got.cpu()[~pad], want[~pad], atol=1e-4)
        assert torch.allclose(gpu(x.cuda()).cpu(), cpu(x), atol=1e-4)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert gpu(x.cuda(), src_key_padding_mask=pad.cuda()).shape == want.shape
gpu.train()
gpu(x.cuda(), src_key_padding_mask=pad.cuda()).sum().backward()
assert all(p.grad is not None for p in gpu.parameters())
print("OK")
