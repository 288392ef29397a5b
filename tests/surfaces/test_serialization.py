"""``torch.save`` and ``torch.load``: files travel between machines with and without this package."""

from __future__ import annotations

import textwrap

import pytest

from ..conftest import STARTABLE

# With the shim, then without it: a file as the plugin itself writes it.
WRITE = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 2).cuda()
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 3, device="cuda")).sum().backward()
optimizer.step()
torch.save({
    "model": model.state_dict(), "optimizer": optimizer.state_dict(), "device": torch.device("cuda:0"),
    "type": torch.device("cuda").type, "rng": torch.cuda.get_rng_state_all(), "double": torch.ones(2).double().cuda(),
    "half": torch.ones(2).half().cuda(), "parameter": torch.nn.Parameter(torch.ones(1).cuda()),
}, sys.argv[1])
torch.save(model, sys.argv[1] + ".whole")
torch.save(model.state_dict(), sys.argv[1] + ".legacy", _use_new_zipfile_serialization=False)
import flagos_shim
state = {name: value.cpu() for name, value in model.state_dict().items()}
kind = str(model.weight.device.type)
flagos_shim.deactivate()
state = {name: value.to(kind) for name, value in state.items()}
torch.save(state, sys.argv[1] + ".native")
torch.save(state, sys.argv[1] + ".native_legacy", _use_new_zipfile_serialization=False)
"""

# Runs without the shim, a plugin or a back end: another machine.
ELSEWHERE = """
import sys, torch
for path in sys.argv[1:]:
    own = "cpu" if path.endswith("cpu.pt") else "cuda:0"
    state = torch.load(path, map_location="cpu", weights_only=False)
    assert state["model"]["weight"].device.type == "cpu" and state["model"]["weight"].shape == (2, 3)
    assert state["device"] == torch.device(own) and state["double"].dtype is torch.float64
    assert type(state["type"]) is str and state["type"] == torch.device(own).type
    whole = torch.load(path + ".whole", map_location="cpu", weights_only=False)
    assert torch.equal(whole.weight, state["model"]["weight"])
    legacy = torch.load(path + ".legacy", map_location=torch.device("cpu"), weights_only=True)
    assert torch.equal(legacy["weight"], state["model"]["weight"])
assert not {"torch_npu", "torch_mlu", "torch_musa", "flagos_shim._activation"} & set(sys.modules)
"""

READ = """
import sys, torch
here = torch.zeros(1, device="cuda").device
for path in sys.argv[1:]:
    kept = torch.device("cpu") if path.endswith("cpu.pt") else here       # a tensor of the host's stays there
    wanted = None
    for part, safe in (("", False), (".legacy", True), (".native", True), (".native_legacy", True)):
        def weight(where):
            state = torch.load(path + part, map_location=where, weights_only=safe)
            return (state["model"] if part == "" else state)["weight"]

        for where in (None, lambda storage, tag: None, {"cpu:7": "cpu"}):
            assert weight(where).device == kept, (path, part, where, weight(where).device)
        for where in ("cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0), "flagos",
                      {"cuda:0": "cuda:0", "npu:0": "cuda", "mlu:0": "cuda", "musa:0": "cuda", "cpu": "cuda"},
                      lambda storage, tag: storage.cuda(0)):
            assert weight(where).device == here, (path, part, where, weight(where).device)
        for where in ("cpu", torch.device("cpu"), lambda storage, tag: storage):
            assert weight(where).device.type == "cpu", (path, part, where)
        wanted = weight("cpu") if wanted is None else wanted
        assert torch.equal(weight("cpu"), wanted) and torch.equal(weight("cuda").cpu(), wanted), (path, part)
        if not part:
            assert weight("meta").is_meta
    model = torch.nn.Linear(3, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    state = torch.load(path, weights_only=False)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    model(torch.ones(1, 3, device="cuda")).sum().backward()
    optimizer.step()
    assert model.weight.device == here == optimizer.state[model.weight]["exp_avg"].device
    whole = torch.load(path + ".whole", map_location="cuda", weights_only=False)
    assert whole(torch.ones(1, 3).cuda()).device == here
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory, run_isolated):
    """The same checkpoint, written on each vendor."""
    folder = tmp_path_factory.mktemp("checkpoints_cuda")
    paths = [str(folder / f"{name}.pt") for name in STARTABLE]
    for name, path in zip(STARTABLE, paths):
        run_isolated(WRITE, backend=name, args=[path]).ok()
    return paths


def test_written_on_each_loads_where_nothing_is_installed(written, run_isolated):
    run_isolated(ELSEWHERE, backend=None, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, args=written).ok()


def test_written_on_each_with_and_without_the_shim_loads_on_every_vendor(written, backend, run_isolated):
    run_isolated(READ, backend=backend, args=written).ok()


@pytest.mark.parametrize("backend", ["ascend", "mlu", "musa"])
def test_tags_of_every_vendor_load_here_and_a_card_that_is_not_there_is_an_error(backend, run_isolated):
    run_isolated(
        textwrap.dedent("""
        import io, pickle, torch
        from torch.serialization import default_restore_location, location_tag
        storage = torch.arange(4.0).untyped_storage()
        for tag in ("cuda", "cuda:1", "npu:0", "mlu:1", "musa:0", "xpu:0", "hpu:0", "gcu", "privateuseone:0", "flagos:1"):
            moved = default_restore_location(storage, tag)
            assert moved.is_cuda and moved.device.index == int(tag.partition(":")[2] or 0), tag
            assert location_tag(moved) == f"cuda:{moved.device.index}"
        assert default_restore_location(storage, "cpu") is storage
        try:
            default_restore_location(storage, "cuda:7")
        except RuntimeError as error:
            assert "device 7" in str(error) and "device_count() is 2" in str(error), error
        else:
            raise AssertionError("card 7 of 2")
        for bad in ("cuda_ckpt", "path/cuda:0"):
            try:
                default_restore_location(storage, bad)
            except RuntimeError as error:
                assert "don't know how to restore data location" in str(error), error
            else:
                raise AssertionError(bad)
        back = pickle.loads(pickle.dumps(torch.ones(2, device="cuda")))
        assert back.is_cuda and back.tolist() == [1.0, 1.0]
    """),
        backend=backend,
    ).ok()


def test_load_itself_pickles(run_isolated):
    for backend in ("ascend", "mlu"):
        run_isolated(
            "import pickle, torch; assert pickle.loads(pickle.dumps(torch.load)) is torch.load", backend=backend
        ).ok()
