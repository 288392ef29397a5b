"""An interpreter whose constructors cannot be replaced: a class stands in front of torch.device, and status says so."""

from __future__ import annotations

import pytest

BEFORE = """
from flagos_shim import _slots
_slots.supported = lambda: "this interpreter is made up"
import torch
native = type(torch.zeros(1).device)
"""

PROGRAM = """
import copy, json, pickle, typing
import flagos_shim, torch
kind = torch.flagos_info()["device_type"]
assert torch.device is not native
for made in (torch.device("cuda"), torch.device(type="cuda"), torch.device("flagos"), torch.device("cuda:0"),
             torch.device("cuda", 0), torch.device(torch.device("cuda:0"))):
    assert str(made).partition(":")[0] == kind and isinstance(made, torch.device), made
    x = torch.zeros(2, device=made)
    assert x.to(made).device == x.device and isinstance(x.device, torch.device) and not isinstance(kind, torch.device)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
assert pickle.loads(pickle.dumps(torch.device)) is torch.device and issubclass(type(x.device), torch.device)
assert str(torch.device("cpu")) == "cpu" and torch.device.__name__ == "device"
typing.get_type_hints(torch.Tensor.cuda); typing.Optional[torch.device]
try: torch.device("cudo")
except RuntimeError as error: assert "cudo" in str(error)
else: raise AssertionError("no error")
with torch.device("cuda"):
    assert torch.zeros(1).device.type == kind
torch.set_default_device("cuda"); assert torch.ones(1).device.type == kind; torch.set_default_device(None)

assert torch.Generator(device="cuda").manual_seed(3).device.type == kind
class Mine(torch.Generator): ...
assert isinstance(Mine(), torch.Generator) and isinstance(Mine(), Mine)
model = torch.nn.Linear(2, 2, device=torch.device("cuda")).to(torch.device("cuda"))
model(torch.ones(1, 2, device=torch.device("cuda:0"))).sum().backward()
file = __import__("io").BytesIO()
torch.save({"at": torch.device("cuda:0"), "x": x}, file); file.seek(0)
loaded = torch.load(file, map_location=torch.device("cuda:0"))
assert loaded["at"].type == kind == loaded["x"].device.type

status = flagos_shim.status()
assert "this interpreter is made up" in status["torch_device"] and "torch.compile" in status["torch_device"]
assert status["failures"] == {} and "torch:device" in [patch["target"] for patch in status["patches"]]
assert "this interpreter is made up" in status["skipped"]["builtins:RuntimeError"]
json.dumps(status)
assert flagos_shim.deactivate() == [] and torch.device is native
assert str(torch.device("cuda:0")) == "cuda:0"
"""


@pytest.mark.parametrize("backend", ["mlu", "cpu"])
def test_a_class_stands_in_front_of_the_device_and_status_says_so(backend: str, run_isolated) -> None:  # type: ignore[no-untyped-def]
    run_isolated(BEFORE + PROGRAM, backend=backend).ok()


def test_an_error_of_torchs_own_class_still_has_its_words(run_isolated) -> None:  # type: ignore[no-untyped-def]
    program = """
try: torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error: print(str(error).partition(" Tried")[0])
"""
    assert run_isolated(BEFORE + program, backend="ascend").ok().stdout.strip() == "CUDA out of memory."
