"""``torch.device``: what it constructs, what ``.type`` answers to whom, and that it stays torch's own type."""

from __future__ import annotations

import pytest

from flagos_shim import registry

ACCELERATORS = pytest.mark.parametrize("backend", ["ascend", "mlu", "musa"])

NAMES = """
import copy, json, pickle, sys, torch
x = torch.zeros(2, device="cuda")
kind = x.device.type
assert kind == "cuda" and "cuda" == kind and kind == "npu" and not kind != "cuda" and not kind != "npu"
assert kind != "cpu" and kind in ("cuda", "mps") and kind in ["xpu", "cuda"] and kind in {"cuda"}
assert {"cuda": 1}[kind] == 1 and {kind: 1}["cuda"] == 1 and kind not in ("cpu", "mps")
assert str(x.device) == "npu:0" and f"{kind}:1" == "npu:1" and repr(x.device) == "device(type='npu', index=0)"
assert json.dumps(kind) == '"npu"' and kind.upper() == "NPU" and isinstance(kind, str)
assert copy.deepcopy(kind) is kind and type(pickle.loads(pickle.dumps(kind))) is str
assert torch.zeros(1).device.type == "cpu" and type(torch.zeros(1).device.type) is str

# torch's and the plugin's own code see the plain name
namespace = {"__name__": "torch.nn.somewhere", "device": x.device, "kind": kind}
exec("plain = device.type; same = kind == 'cuda'; found = {'npu': 1}.get(kind)", namespace)
assert type(namespace["plain"]) is str and namespace["plain"] == "npu"
assert namespace["same"] is False and namespace["found"] == 1

# whatever such a name is passed to behaves as with the plain string
with torch.autocast(kind, dtype=torch.bfloat16):
    assert torch.is_autocast_enabled(kind) and (x @ x).dtype is torch.bfloat16
assert torch.amp.GradScaler(kind).is_enabled()
assert torch.Generator(kind).device == torch.Generator("cuda").device
assert torch.zeros(1, device=kind).is_cuda and torch.zeros(1).to(kind).is_cuda
assert torch.device(kind, 1) == torch.device("cuda:1") and torch.device(kind) == torch.device("cuda")
with torch.random.fork_rng(devices=[0], device_type=kind):
    torch.rand(1, device=kind)
"""

FORMS = """
import pickle, torch
assert type(torch.zeros(1, device="cuda").device) is torch.device and isinstance(torch.device, type)
one = torch.device("cuda", 1)
for made in (torch.device("cuda:1"), torch.device(type="cuda", index=1), torch.device("cuda", index=1),
             torch.device(one), torch.device("flagos:1"), torch.device("flagos", 1), torch.device(1),
             pickle.loads(pickle.dumps(one))):
    assert made == one and made.index == 1, made
assert torch.device(type="cpu") == torch.device("cpu") == torch.device(torch.device("cpu"))
assert torch.device("cuda").index is None and torch.device(type="cuda").index is None
assert torch.device("meta").type == "meta" and torch.device("cpu", 0).index == 0


class Name(str):
    pass


assert torch.device(Name("cuda:1")) == one and torch.zeros(1, device=Name("cuda:1")).device == one
assert torch.get_device_module("cuda") is torch.cuda and torch.get_device_module("cpu") is torch.cpu
"""

# The texts of torch's own parser, once without and once with the shim.
BAD = """
import json, torch
texts = []
for make in (lambda: torch.device("cuda:-1"), lambda: torch.device("cuda:x"), lambda: torch.device("cud"),
             lambda: torch.device("cuda:01"), lambda: torch.device("cuda:0:0"), lambda: torch.device(""),
             lambda: torch.device(" cuda"), lambda: torch.device(3.5), lambda: torch.device(),
             lambda: torch.device("cuda", "x"), lambda: torch.device("cuda:1", 1), lambda: torch.zeros(2, device="cudaa"),
             lambda: torch.zeros(2, device=3.5), lambda: torch.ones(2).to("nonsense"), lambda: torch.zeros("x")):
    try:
        make()
    except (RuntimeError, TypeError) as error:
        texts.append([type(error).__name__, str(error)])
    else:
        texts.append(["none", ""])
print(json.dumps(texts))
"""


@ACCELERATORS
def test_the_type_answers_to_both_names(backend, run_isolated):
    kind = registry.resolve(backend).device_type
    run_isolated(NAMES.replace("npu", kind).replace("NPU", kind.upper()), backend=backend).ok()


@ACCELERATORS
def test_every_constructor_form(backend, run_isolated):
    run_isolated(FORMS, backend=backend).ok()


@pytest.fixture(scope="module")
def plain(run_isolated):
    """What torch itself says of the bad device strings."""
    return run_isolated(BAD, backend=None, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).json


def test_bad_device_strings_give_torchs_own_error(backend, plain, run_isolated):
    routed = run_isolated(BAD, backend=backend).json
    assert len(plain) == 15
    for ours, theirs in zip(routed, plain):
        # The plugin's name stands in torch's own list of device types once it is registered.
        assert ours[0] == theirs[0]
        kind = registry.resolve(backend).device_type
        assert ours[1].replace(kind, "privateuseone") == theirs[1].replace(kind, "privateuseone")


def test_on_the_cpu_there_is_one_device(run_isolated):
    run_isolated(
        """
import torch
assert torch.device("cuda") == torch.device("cuda:0") == torch.device(0) == torch.device("cpu")
assert torch.device("cuda", 0) == torch.device("cpu") and torch.device("cuda:3").index == 3
x = torch.ones(2, device="cuda:0")
assert x.device == torch.device("cuda:0") and x.cuda() is x and not x.is_cuda and x.device.type == "cpu"
""",
        backend="cpu",
    ).ok()
