# Must hold: torch.load honours every form of map_location alike, in files of the present and of the old format.
import collections
import io

import torch

OLD = {"_use_new_zipfile_serialization": False}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)
        self.register_buffer("steps", torch.ones(1))
        self.extra = [torch.ones(1, device="cuda")]


def saved(obj, **how):
    buf = io.BytesIO()
    torch.save(obj, buf, **how)
    return buf


def load(buf, **how):
    buf.seek(0)
    return torch.load(buf, **how)


here = torch.ones(1, device="cuda").is_cuda                   # false where the only device is the CPU
state = {"w": torch.arange(4.0, device="cuda"), "c": torch.ones(2)}
to_device = ("cuda", "cuda:0", torch.device("cuda", 0), lambda s, loc: s.cuda(), lambda s, loc: s.cuda(0))
to_cpu = ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda s, loc: s, lambda s, loc: s.cpu())
for how in ({}, OLD):
    buf = saved(state, **how)
    for weights_only in (True, False):
        for where in (None, *to_device, {"cpu": "cuda:0"}, {"cuda:3": "cuda:0"}):
            got = load(buf, map_location=where, weights_only=weights_only)
            assert got["w"].is_cuda == here and got["w"].tolist() == [0.0, 1.0, 2.0, 3.0], (how, where)
            moved = where in to_device or where == {"cpu": "cuda:0"}
            assert got["c"].is_cuda == (here and moved), (how, where)
        for where in to_cpu:
            got = load(buf, map_location=where, weights_only=weights_only)
            assert got["w"].is_cpu and got["w"].tolist() == [0.0, 1.0, 2.0, 3.0], (how, where)
        if here:
            asked = []
            load(buf, map_location=lambda s, loc: asked.append((loc, s.device.type)) or s, weights_only=weights_only)
            assert sorted(asked) == [("cpu", "cpu"), ("cuda:0", "cpu")], asked
            try:
                load(buf, map_location="cuda:99", weights_only=weights_only)
            except RuntimeError as e:
                assert "deserialize" in str(e) and "99" in str(e), e
            else:
                raise AssertionError("a card that is not there was accepted")

    # a whole module: parameters, buffers and what it holds besides
    buf = saved(Net().cuda(), **how)
    for where, want in ((None, here), ("cuda", here), ("cpu", False), (lambda s, loc: s, False)):
        net = load(buf, map_location=where, weights_only=False)
        parts = (net.lin.weight, net.steps, net.extra[0])
        assert all(t.is_cuda == want for t in parts), (how, where, [t.device for t in parts])
        assert isinstance(net.lin.weight, torch.nn.Parameter) and net.lin.weight.requires_grad

    # tensors that share memory still share it, wherever they go
    base = torch.arange(6.0, device="cuda")
    buf = saved(collections.OrderedDict(a=base[:3], b=base[2:], t=base.view(2, 3).t()), **how)
    for where in (None, "cuda", "cpu"):
        for weights_only in (True, False):
            got = load(buf, map_location=where, weights_only=weights_only)
            got["a"][2] = 99
            assert got["b"][0].item() == 99 and got["t"].stride() == (1, 3), (how, where, weights_only)
print("OK")
