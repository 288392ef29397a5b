# Must hold: what holds a device's type, a scaler or a sparse tensor pickles by torch's own names and loads anywhere.
import copy
import io
import json
import pickle
import pickletools

import torch

VENDORS = ("npu", "mlu", "musa", "privateuse")


def check(obj, **how):
    buf = io.BytesIO()
    torch.save(obj, buf, **how)
    for raw in (pickle.dumps(obj, 2), pickle.dumps(obj)):
        words = [str(arg) for _, arg, _ in pickletools.genops(raw) if isinstance(arg, str)]
        assert not [w for w in words if w.split(":")[0] in VENDORS], words
    buf.seek(0)
    return torch.load(buf, **({} if not how else {"weights_only": False}))


x = torch.ones(2, device="cuda")
here = x.is_cuda
name = x.device.type
back = check({"device": name, "also": [name]})          # torch.load's default is weights_only=True
assert back["device"] == back["also"][0] and type(back["device"]) is str
assert torch.zeros(1, device=back["device"]).device == x.device
assert copy.deepcopy(name) == name and torch.zeros(1, device=json.loads(json.dumps(name))).is_cuda == here

scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
again = pickle.loads(pickle.dumps(scaler))
assert again.is_enabled() == scaler.is_enabled()
check(scaler.state_dict())
if here:
    words = [a for _, a, _ in pickletools.genops(pickle.dumps(scaler, 2)) if isinstance(a, str)]
    assert not set(words) & set(VENDORS), words
    loss = again.scale((torch.ones(1, device="cuda", requires_grad=True) * 2).sum())
    assert loss.item() == 8

try:
    sparse = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), device="cuda", check_invariants=True)
except (NotImplementedError, RuntimeError):
    sparse = None                                       # a chip without sparse tensors says so
if sparse is not None:
    for where in (None, "cuda", "cpu"):
        buf = io.BytesIO()
        torch.save({"s": sparse}, buf)
        assert not any(v.encode() in buf.getvalue() for v in ("npu:", "mlu:")), "a sparse tensor names the vendor"
        buf.seek(0)
        got = torch.load(buf, map_location=where)["s"]
        assert got.is_sparse and got.is_cuda == (here and where != "cpu"), where
        assert got.to_dense().cpu().tolist() == [[0.0, 1.0], [2.0, 0.0]]
print("OK")
