"""Every public name of torch.cuda is in one state for each vendor, is what its state says, and stands in the table."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).parent / "inside" / "cuda_names.py"

# What the host, and a machine without a tool to ask, cannot know; the error says so.
NOT_KNOWN = {"torch.cuda.clock_rate", "torch.cuda.power_draw", "torch.cuda.temperature"}
# Without a tool of the vendor's; torch_npu knows it itself, and the host's is its load.
NO_TOOL = {"torch.cuda.utilization"}
# The CPU's generator has no offset, which torch says by itself.
NO_OFFSET = {"torch.cuda._get_rng_state_offset", "torch.cuda._set_rng_state_offset"}

PRISTINE = """
import importlib, json, pkgutil, types
import torch
names = []
for info in [None, *pkgutil.walk_packages(torch.cuda.__path__, "torch.cuda.")]:
    name = "torch.cuda" if info is None else info.name
    if "._" in name:
        continue
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
        value = getattr(module, public)
        listed = hasattr(module, "__all__") or getattr(value, "__module__", "").startswith("torch.cuda")
        if listed and not isinstance(value, types.ModuleType):
            names.append(f"{name}:{public}")
print(json.dumps(names))
"""


@pytest.fixture(scope="module", params=["ascend", "cpu", "mlu", "musa"])
def probed(request, run_isolated, with_npu_smi):
    """What the probe found under one back end; Ascend has its tool."""
    env = with_npu_smi if request.param == "ascend" else {}
    return request.param, run_isolated(PROBE, backend=request.param, env=env).json


@pytest.fixture(scope="module")
def pristine(run_isolated):
    """The public names of torch.cuda as torch itself has them."""
    return run_isolated(PRISTINE, backend=None, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).json


def test_no_name_is_lost(probed, pristine):
    _, found = probed
    assert len(pristine) > 150
    assert set(pristine) - set(found["names"]) == set()


def test_every_name_is_used_and_does_what_its_state_says(probed):
    backend, found = probed
    problems = dict(found["problems"])
    if backend == "cpu":
        problems = {name: problem for name, problem in problems.items() if name not in NO_OFFSET}
    unknown = {"ascend": set(), "cpu": NOT_KNOWN}.get(backend, NOT_KNOWN | NO_TOOL)
    for name in unknown:
        assert "is not known" in problems.pop(name)
    if backend != "ascend":  # the pool of use_mem_pool cannot even be made
        assert "MemPool is not supported" in problems.pop("torch.cuda.use_mem_pool")
    if backend in ("mlu", "musa"):  # the pretend device has no sparse kernels
        for name in [name for name in problems if name.startswith("torch.cuda.sparse.")]:
            assert "Operator not supported" in problems.pop(name)
    assert problems == {}


def test_no_name_reaches_cuda(probed):
    assert probed[1]["cuda_only"] == {}


def test_the_table_is_up_to_date(probed):
    backend, found = probed
    written = (ROOT / "docs" / "coverage" / f"{backend}.md").read_text(encoding="utf-8")
    assert written == found["table"], (
        "run: PYTHONPATH=tests/pretend python -m flagos_shim._coverage --write docs/coverage"
    )
    assert "0 lost" in written
