# Must hold: making an autocast starts no device; where no card is visible autocast and GradScaler stand down with torch's warning.
import os
import subprocess
import sys
import warnings

import torch


@torch.autocast("cuda", dtype=torch.float16)
def product(x):
    return x @ x


torch.autocast("cuda")
assert not torch.cuda.is_initialized()
assert product(torch.ones(2, 2, device="cuda")).dtype is torch.float16
assert torch.cuda.is_initialized()

NO_CARD = """
import warnings, torch
assert not torch.cuda.is_available()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    context = torch.autocast("cuda")
    scaler = torch.amp.GradScaler("cuda")
assert [str(w.message).split(".")[0] for w in seen if "not available" in str(w.message)], seen
with context:
    assert not torch.is_autocast_enabled("cuda")
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
with torch.autocast("cuda", enabled=False):
    pass
assert not scaler.is_enabled() and float(scaler.scale(torch.ones(()))) == 1
"""
subprocess.run([sys.executable, "-c", NO_CARD], env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, check=True)

# Scripting and running a function says nothing of its own.
with warnings.catch_warnings():
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message=".*torch.jit.script.*")


    def on_device(x: torch.Tensor) -> torch.Tensor:
        return x.to("cuda") + 1


    assert torch.jit.script(on_device)(torch.ones(1)).is_cuda
print("OK")
