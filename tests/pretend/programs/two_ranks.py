"""One of two ranks: the vendor's collectives, sends and receives, and DistributedDataParallel.

Arguments: device name, back end, store file, rank.
"""

from __future__ import annotations

import importlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

D, backend, store, rank = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
importlib.import_module(f"torch_{D}")
getattr(torch, D).set_device(rank)
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=2)
device = torch.device(D, rank)
for op, wanted in ((dist.ReduceOp.SUM, 3.0), (dist.ReduceOp.AVG, 1.5), (dist.ReduceOp.MAX, 2.0)):
    x = torch.full((3,), rank + 1.0, device=device)
    dist.all_reduce(x, op=op)
    assert x.tolist() == [wanted] * 3, (op, x)
both = torch.empty(2, device=device)
dist.all_gather_into_tensor(both, torch.full((1,), float(rank), device=device))
assert both.tolist() == [0.0, 1.0]
part = torch.empty(1, device=device)
dist.reduce_scatter_tensor(part, both)
assert part.tolist() == [2.0 * rank]
got = torch.empty(1, device=device)
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, part + 5, 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]):
    work.wait()
assert got.item() == 5 + 2.0 * (1 - rank)
wide = torch.tensor([0.1], dtype=torch.float64, device=device)
dist.all_reduce(wide)
assert (wide.item() == 0.2) == (D == "musa")  # CNCL sends float64 as float32
try:
    dist.all_reduce(torch.ones(2))
except RuntimeError:
    pass
else:
    raise AssertionError("a host tensor was taken")
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Linear(3, 2).to(device), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(5, 3, device=device)).square().sum().backward()
    optimizer.step()
weights = [torch.empty_like(model.module.weight) for _ in range(2)]
dist.all_gather(weights, model.module.weight.detach())
assert torch.equal(*weights) and dist.get_backend() == backend
dist.destroy_process_group()
print("OK")
