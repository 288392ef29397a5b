"""``torch.save`` and ``torch.load``: files travel between machines with and without this package."""

from __future__ import annotations

import textwrap

import pytest

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
"""

# Runs without the shim, the plugin or a back end: another machine.
ELSEWHERE = """
import sys, torch
assert "torch_npu" not in sys.modules and "flagos_shim" not in sys.modules
state = torch.load(sys.argv[1], map_location="cpu", weights_only=False)
assert state["model"]["weight"].device.type == "cpu" and state["model"]["weight"].shape == (2, 3)
assert state["device"] == torch.device(sys.argv[2]) and state["double"].dtype is torch.float64
assert type(state["type"]) is str and state["type"] == torch.device(sys.argv[2]).type
whole = torch.load(sys.argv[1] + ".whole", map_location="cpu", weights_only=False)
assert torch.equal(whole.weight, state["model"]["weight"])
legacy = torch.load(sys.argv[1] + ".legacy", map_location=torch.device("cpu"), weights_only=True)
assert torch.equal(legacy["weight"], state["model"]["weight"])
"""

READ = """
import sys, torch
path = sys.argv[1]
for where in (None, "cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0), {"cuda:0": "cuda:0"}, "flagos",
              lambda storage, tag: storage.cuda(0), lambda storage, tag: None):
    state = torch.load(path + ".legacy", map_location=where, weights_only=True)
    assert state["weight"].device == torch.zeros(1, device="cuda").device, (where, state["weight"].device)
for where in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, tag: storage):
    assert torch.load(path + ".legacy", map_location=where, weights_only=True)["weight"].device.type == "cpu", where
assert torch.load(path, map_location="meta", weights_only=False)["model"]["weight"].is_meta
model = torch.nn.Linear(3, 2).cuda()
model.load_state_dict(torch.load(path, weights_only=False)["model"])
assert model.weight.device == torch.zeros(1, device="cuda").device
"""


@pytest.mark.parametrize("writer", ["ascend", "cpu"])
def test_written_here_loads_elsewhere_and_on_every_back_end(writer, tmp_path, run_isolated):
    path = tmp_path / "checkpoint_cuda.pt"
    run_isolated(WRITE, backend=writer, args=[str(path)]).ok()
    own = "cuda:0" if writer == "ascend" else "cpu"
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    run_isolated(ELSEWHERE, backend=None, env=off, args=[str(path), own]).ok()
    for reader in ("ascend", "cpu"):
        code = READ if writer == "ascend" or reader == "cpu" else "import torch, sys; torch.load(sys.argv[1])"
        run_isolated(
            code.replace("torch.load(sys.argv[1])", "torch.load(sys.argv[1], weights_only=False)"),
            backend=reader,
            args=[str(path)],
        ).ok()


def test_tags_of_every_vendor_load_here_and_a_card_that_is_not_there_is_an_error(run_isolated):
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
    """)
    ).ok()
