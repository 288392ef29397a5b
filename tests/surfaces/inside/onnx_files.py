"""torch.onnx.export of models on the vendor's device, by both exporters."""

import io
import re
import warnings

import torch
from _compilers import FOLDER, run
from torch import nn

warnings.simplefilter("ignore")
V = str(torch.zeros(1, device="cuda").device.type)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))

    def forward(self, x):
        x = x.to("cuda")
        d = torch.device("cuda")
        y = self.l(x) + torch.zeros(2, device="cuda") + torch.arange(2, device=d) + self.b
        if x.is_cuda:
            y = y * 2
        if x.device.type == "cuda":
            y = y * 3
        return y + torch.zeros(x.shape[0], 2, device=x.device) + x.cuda()


def check_onnx():
    b = io.BytesIO()
    n = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).cuda()
    torch.onnx.export(n, (torch.ones(1, 2, device="cuda"),), b, dynamo=False)
    assert len(b.getvalue()) > 100
    b = io.BytesIO()
    n = Net().cuda()
    torch.onnx.export(n, (torch.ones(1, 2, device="cuda"),), b, dynamo=False)
    assert len(b.getvalue()) > 100


def check_onnx_dynamo():
    n = Net().cuda()
    p = torch.onnx.export(n, (torch.ones(1, 2, device="cuda"),), dynamo=True)
    p.save(FOLDER / "d.onnx")
    data = (FOLDER / "d.onnx").read_bytes()
    found = re.search(rb".{0,80}\bnpu\b.{0,80}", data)
    assert found is None, found


run(globals())
