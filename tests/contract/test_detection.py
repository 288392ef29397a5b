"""Detection without the hardware: what a HIP build, torch's own device module and an old torch are taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
torch.xpu._is_compiled = lambda: True
registry.driver_answers = lambda vendor: vendor.name == "xpu"
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


# A plugin whose driver is in the state that the argument says; only this process is told of device files.
PLUGIN = """
import sys, time, types, torch
torch.utils.rename_privateuse1_backend("gcu")
module = types.ModuleType("torch.gcu")
module.is_available = lambda: module.device_count() > 0
module.current_device = lambda: 0
module._is_in_bad_fork = lambda: False
module.device_count = {count}
torch._register_device_module("gcu", module)
"""
ASKED = """
import logging, sys, torch
from flagos_shim import registry
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(levelname)s %(message)s")
registry.DRIVER_LIMIT = float(sys.argv[1])
registry.has_device_files = lambda vendor: vendor.name == "gcu"
print(registry.detect().name, "torch_gcu" in sys.modules)
"""
DRIVERS = {
    "lambda: 2": ("60", "gcu False", "INFO Detection: the driver of 'gcu' finds 2 devices."),
    "lambda: 0": ("60", "cpu False", "INFO Detection: the driver of 'gcu' finds 0 devices."),
    "lambda: time.sleep(600)": ("8", "cpu False", "whose driver was asked for its devices: no answer within 8 s. Run "),
    "lambda: 1 // 0": ("60", "cpu False", "whose driver was asked for its devices: ZeroDivisionError: "),
}


@pytest.mark.parametrize("count", DRIVERS)
def test_a_driver_is_asked_in_a_process_of_its_own(run_isolated: Any, tmp_path: Path, count: str) -> None:
    limit, found, said = DRIVERS[count]
    (tmp_path / "torch_gcu.py").write_text(PLUGIN.format(count=count))
    env = {**ALONE, "PYTHONPATH": str(tmp_path)}
    run = run_isolated(BARE + ASKED, backend=None, env=env, args=(limit,)).ok()
    assert run.stdout.splitlines()[-1] == found and said in run.stdout, run.stdout


def test_a_sitecustomize_that_imports_the_shim_does_not_ask_again(run_isolated: Any, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import flagos_shim\n")
    (tmp_path / "torch_gcu.py").write_text(PLUGIN.format(count="lambda: 2"))
    env = {**ALONE, "PYTHONPATH": str(tmp_path)}
    run = run_isolated(BARE + ASKED, backend=None, env=env, args=("60",)).ok()
    assert run.stdout.splitlines()[-1] == "gcu False"


def test_what_a_machine_is_taken_for(run_isolated: Any) -> None:
    run_isolated(BARE + DETECTED, backend=None, env=ALONE).ok()


def test_a_torch_without_the_device_module_is_named(run_isolated: Any) -> None:
    said = run_isolated(BARE + OLD_TORCH, backend=None, env=ALONE).ok().stdout
    assert said.startswith("The back end 'xpu': torch was imported, but has no torch.xpu. Run `flagos-diagnose")
