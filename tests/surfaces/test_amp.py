"""Automatic mixed precision: on wherever a program says ``cuda``, on every vendor, and off where it is switched off."""

from __future__ import annotations

AUTOCAST = """
import pickle, torch
from torch.amp import custom_bwd, custom_fwd
kind = torch.zeros(1, device="cuda").device
w, x = torch.ones(4, 4, device="cuda"), torch.ones(4, 4, device="cuda")
low = torch.get_autocast_dtype("cuda")
assert torch.get_autocast_dtype("flagos") is low is torch.get_autocast_gpu_dtype()
assert torch.amp.is_autocast_available("cuda") and not torch.is_autocast_enabled() and not torch.is_autocast_enabled("cuda")
for make in (
    lambda **k: torch.autocast("cuda", **k), lambda **k: torch.autocast(device_type="cuda", **k),
    lambda **k: torch.amp.autocast("cuda", **k), lambda **k: torch.cuda.amp.autocast(**{"dtype": low, **k}),
    lambda **k: torch.autocast("flagos", **k), lambda **k: torch.autocast(x.device.type, **k),
):
    with make():
        assert torch.is_autocast_enabled("cuda") and torch.is_autocast_enabled()
        assert (x @ w).dtype is low and (x + w).dtype is torch.float32, make
        assert (x @ w).float().softmax(0).dtype is torch.float32
        with make(enabled=False):
            assert (x @ w).dtype is torch.float32 and not torch.is_autocast_enabled("cuda")
        assert torch.is_autocast_enabled("cuda")
    with make(dtype=torch.bfloat16):
        assert (x @ w).dtype is torch.bfloat16 and torch.get_autocast_dtype("cuda") is torch.bfloat16
        with make(dtype=torch.float16):
            assert (x @ w).dtype is torch.float16
    assert (x @ w).dtype is torch.float32 and torch.get_autocast_dtype("cuda") is low
    try:
        with make():
            raise KeyError
    except KeyError:
        assert not torch.is_autocast_enabled("cuda")


@torch.autocast("cuda", dtype=torch.bfloat16)
def decorated(x):
    return x @ w


assert decorated(x).dtype is torch.bfloat16
torch.set_autocast_dtype("cuda", torch.bfloat16)
assert torch.get_autocast_gpu_dtype() is torch.bfloat16
torch.set_autocast_gpu_dtype(low)
torch.set_autocast_enabled("cuda", True)
assert torch.is_autocast_enabled(kind.type) and (x @ w).dtype is low
torch.set_autocast_enabled("cuda", False)


class Scaled(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        assert not torch.is_autocast_enabled("cuda") and x.dtype is torch.float32
        return x * 2

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        assert not torch.is_autocast_enabled("cuda")
        return grad * 2


with torch.autocast("cuda", dtype=torch.bfloat16):
    y = Scaled.apply((x.requires_grad_() @ w))
    y.sum().backward()
assert y.dtype is torch.float32 and x.grad.dtype is torch.float32 and x.grad[0, 0].item() == 8
"""

SCALER = """
import torch
for make in (lambda **k: torch.amp.GradScaler("cuda", **k), lambda **k: torch.GradScaler(**k),
             lambda **k: torch.amp.GradScaler(device="cuda", **k), lambda **k: torch.cuda.amp.GradScaler(**k)):
    scaler = make(init_scale=8.0, growth_interval=2)
    assert scaler.is_enabled() and scaler.get_scale() == 8.0
    assert not make(enabled=False).is_enabled()

torch.manual_seed(0)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(16, 4).cuda(), torch.ones(16, 1).cuda()
losses = []
for step in range(12):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = (model(x) - y).float().square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
assert losses[-1] < 0.7 * losses[0] and scaler.get_scale() == 8.0 * 2**6

# A gradient that is not finite: the step is skipped and the scale halved.
before, scale = model.weight.detach().clone(), scaler.get_scale()
optimizer.zero_grad()
scaler.scale(model(x).sum()).backward()
model.weight.grad[0, 0] = float("inf")
scaler.step(optimizer)
scaler.update()
assert torch.equal(model.weight, before) and scaler.get_scale() == scale / 2
state = scaler.state_dict()
other = torch.amp.GradScaler("cuda")
other.load_state_dict(state)
assert other.get_scale() == scale / 2 and other.state_dict() == state
"""


def test_autocast_and_scaler(backend, run_isolated):
    run_isolated(AUTOCAST + SCALER, backend=backend, flags=("-W", "ignore")).ok()
