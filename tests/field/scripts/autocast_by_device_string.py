# Must hold: autocast and GradScaler take a device string with an ordinal, and what x.device.type gives.
import pickle

import torch

x, layer = torch.ones(1, 2, device="cuda"), torch.nn.Linear(2, 2).cuda()
kinds = ["cuda", x.device.type] + (["cuda:0", str(x.device)] if x.is_cuda else [])
for kind in kinds:
    with torch.autocast(kind, dtype=torch.bfloat16):
        assert layer(x).dtype is torch.bfloat16, kind
        assert torch.is_autocast_enabled(x.device.type)
    assert layer(x).dtype is torch.float32
    scaler = torch.amp.GradScaler(kind, init_scale=8.0)
    assert scaler.scale(torch.ones((), device="cuda")).item() == 8.0, kind
    scaler.update(torch.full((), 4.0, device="cuda")) if kind != "cuda:0" and ":" not in kind else None
    assert pickle.loads(pickle.dumps(scaler)).is_enabled()
for bad in ("gpu", "nonsense"):
    try:
        torch.autocast(bad)
    except RuntimeError:
        pass
    else:
        raise AssertionError(bad)
print("OK")
