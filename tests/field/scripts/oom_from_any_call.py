# Must hold: whichever call runs out of memory, batch-size finders of every make recognise the error and can go on.
import copy
import functools
import gc
import pickle
import threading

import torch

HUGE = 1 << 48


class Grad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        return v * 1

    @staticmethod
    def backward(ctx, g):
        return torch.zeros(HUGE, device="cuda")


one = torch.ones(1, device="cuda")
calls = {
    "empty": lambda: torch.empty(HUGE, device="cuda"),
    "zeros": lambda: torch.zeros(HUGE, device="cuda"),
    "randn": lambda: torch.randn(HUGE, device="cuda"),
    "full": lambda: torch.full((HUGE,), 1.0, device="cuda"),
    "new_empty": lambda: one.new_empty(HUGE),
    "legacy type": lambda: torch.cuda.FloatTensor(HUGE),
    "storage": lambda: torch.UntypedStorage(HUGE, device="cuda"),
    "layer": lambda: torch.nn.Linear(1 << 24, 1 << 24, device="cuda"),
    "repeat": lambda: one.repeat(HUGE),
    "clone": lambda: one.expand(HUGE).clone(memory_format=torch.contiguous_format),
    "contiguous": lambda: one.expand(HUGE).contiguous(),
    "cat": lambda: torch.cat([one.expand(HUGE)] * 2),
    "add": lambda: torch.ones(1 << 24, 1, device="cuda") + torch.ones(1, 1 << 24, device="cuda"),
    "matmul": lambda: torch.ones(1 << 24, 1, device="cuda") @ torch.ones(1, 1 << 24, device="cuda"),
    "upload": lambda: torch.ones(1).expand(1 << 42).cuda(),
    "to": lambda: torch.ones(1).expand(1 << 42).to("cuda"),
    "backward": lambda: Grad.apply(torch.ones(1, device="cuda", requires_grad=True)).sum().backward(),
}


def accelerate(e):
    return isinstance(e, RuntimeError) and len(e.args) == 1 and "CUDA out of memory." in e.args[0]


def lightning(e):
    return isinstance(e, RuntimeError) and len(e.args) == 1 and "CUDA" in e.args[0] and "out of memory" in e.args[0]


on_device = one.is_cuda
for name, call in calls.items():
    try:
        call()
    except torch.cuda.OutOfMemoryError as e:
        assert accelerate(e) and lightning(e) and str(e).startswith("CUDA out of memory. Tried to allocate"), (name, e)
        kept = e
    except RuntimeError as e:
        assert not on_device, f"{name}: {type(e).__name__}: {e}"
    else:
        assert not on_device, f"{name}: no error at all"
    gc.collect()
    torch.cuda.empty_cache()
assert torch.ones(4, device="cuda").sum().item() == 4

if on_device:
    for same in (pickle.loads(pickle.dumps(kept)), copy.copy(kept)):
        assert type(same) is torch.cuda.OutOfMemoryError and str(same) == str(kept)
    before = torch.cuda.memory_stats()["num_ooms"]
    size = 128
    while True:
        try:
            if size > 16:
                torch.empty(HUGE, device="cuda")
            break
        except RuntimeError as e:
            if "CUDA out of memory" not in str(e):
                raise
            size //= 2
    assert size == 16 and torch.cuda.memory_stats()["num_ooms"] > before
    caught = []

    def in_thread():
        try:
            torch.empty(HUGE, device="cuda")
        except torch.cuda.OutOfMemoryError as e:
            caught.append(e)

    t = threading.Thread(target=in_thread)
    t.start()
    t.join()
    assert len(caught) == 1

# a program's own words are its own
for text in ("CUDA out of memory. Tried to allocate 2.00 GiB", "batch too big: out of memory"):
    try:
        raise RuntimeError(text)
    except RuntimeError as e:
        assert type(e) is RuntimeError and str(e) == text
try:
    torch.empty(1 << 60, dtype=torch.uint8)
except RuntimeError as e:
    assert not isinstance(e, torch.cuda.OutOfMemoryError), "the host's memory is not the device's"
assert functools.reduce(lambda a, b: a + b, [one, one]).item() == 2
print("OK")
