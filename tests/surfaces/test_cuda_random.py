"""Random numbers: seeds, states, generators and forks of the vendor's device, under torch.cuda's names."""

from __future__ import annotations

RANDOM = """
import io, torch


def draw(n=4):
    return torch.rand(n, device="cuda").cpu()


torch.manual_seed(7)
first = draw()
torch.manual_seed(7)
assert torch.equal(first, draw()) and torch.cuda.initial_seed() == 7
torch.cuda.manual_seed(8)
second, state = draw(), torch.cuda.get_rng_state()
assert not torch.equal(first, second) and state.dtype is torch.uint8 and state.device.type == "cpu"
third = draw()
torch.cuda.set_rng_state(state)
assert torch.equal(third, draw())
for device in ("cuda", "cuda:0", 0, torch.device("cuda")):
    torch.cuda.set_rng_state(torch.cuda.get_rng_state(device), device)

# What a checkpoint holds: through a file, with all devices.
file = io.BytesIO()
torch.save({"cuda": torch.cuda.get_rng_state_all(), "cpu": torch.get_rng_state()}, file)
file.seek(0)
wanted = draw(), torch.rand(3), torch.nn.functional.dropout(torch.ones(64, device="cuda")).cpu()
loaded = torch.load(file, map_location="cpu")
torch.cuda.set_rng_state_all(loaded["cuda"])
torch.set_rng_state(loaded["cpu"])
again = draw(), torch.rand(3), torch.nn.functional.dropout(torch.ones(64, device="cuda")).cpu()
assert all(torch.equal(a, b) for a, b in zip(wanted, again))

# A fork of the state leaves no trace.
before = torch.cuda.get_rng_state()
with torch.random.fork_rng():
    draw()
with torch.random.fork_rng(devices=["cuda:0"]):
    draw()
with torch.random.fork_rng(devices=[0], device_type="cuda"):
    draw()
assert torch.equal(before, torch.cuda.get_rng_state())

# Generators of their own.
mine = torch.Generator("cuda").manual_seed(3)
one = torch.randn(5, device="cuda", generator=mine).cpu()
assert torch.equal(before, torch.cuda.get_rng_state())
copy = torch.Generator(device="cuda")
copy.set_state(mine.get_state())
assert torch.equal(torch.randn(5, device="cuda", generator=mine), torch.randn(5, device="cuda", generator=copy))
assert torch.equal(one, torch.randn(5, device="cuda", generator=mine.manual_seed(3)).cpu())
assert mine.device.type == torch.zeros(1, device="cuda").device.type and mine.initial_seed() == 3
assert torch.randperm(6, device="cuda", generator=mine).sort()[0].tolist() == list(range(6))

# Checkpointed activations draw the same numbers again.
x = torch.ones(256, device="cuda", requires_grad=True)
y = torch.utils.checkpoint.checkpoint(torch.nn.functional.dropout, x, use_reentrant=False)
y.sum().backward()
assert torch.equal(x.grad, y.detach())
"""


def test_random_numbers(backend, run_isolated):
    run_isolated(RANDOM, backend=backend).ok()
