"""Detection without the hardware: what a HIP build, torch's own device module and an old torch are taken for."""

from __future__ import annotations

from typing import Any

DETECTED = """
import sys, torch
from flagos_shim import registry
torch.cuda.is_available = lambda: True
assert registry.detect().name == "cuda"
torch.version.hip = "6.2"
assert registry.detect().name == "dcu", "a HIP build is not NVIDIA's"
torch.cuda.is_available = lambda: False
registry.has_device_files = lambda vendor: vendor.name in ("xpu", "dcu", "cuda")
assert registry.detect().name == "cpu", "a graphics card that this torch cannot use"
torch.xpu.is_available = lambda: True
assert registry.detect().name == "xpu"
"""

OLD_TORCH = """
import sys, torch, flagos_shim
sys.modules["torch.xpu"] = None
try: flagos_shim.activate("xpu")
except flagos_shim.BackendUnavailableError as error: print(error)
"""

BARE = "from flagos_shim import _startup; _startup.withdraw()\n"
ALONE = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def test_what_a_machine_is_taken_for(run_isolated: Any) -> None:
    run_isolated(BARE + DETECTED, backend=None, env=ALONE).ok()


def test_a_torch_without_the_device_module_is_named(run_isolated: Any) -> None:
    said = run_isolated(BARE + OLD_TORCH, backend=None, env=ALONE).ok().stdout
    assert said.startswith("The back end 'xpu': torch was imported, but has no torch.xpu. Run `flagos-diagnose")
