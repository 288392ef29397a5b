# Must hold: what training frameworks call on an NCCL group works: objects, averages, coalescing, meshes, hooks, checkpoints.
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

folder = tempfile.TemporaryDirectory()
store = "file://" + os.path.join(folder.name, "store")
dist.init_process_group("nccl", init_method=store, rank=0, world_size=1, device_id=torch.device("cuda:0"))
everyone = [None]
dist.all_gather_object(everyone, {"rank": 0})
assert everyone == [{"rank": 0}]
dist.barrier(device_ids=[0])
for kind in (torch.int64, torch.int32, torch.float32):
    count = torch.full((2,), 7, device="cuda", dtype=kind)
    dist.all_reduce(count, op=dist.ReduceOp.AVG)
    assert count.tolist() == [7, 7]
assert torch.cuda.nccl.version() >= (2, 10)
mesh = init_device_mesh("cuda", (1,), mesh_dim_names=("dp",))
assert mesh.device_type == "cuda" and mesh.get_group("dp") is not None
for hook in (default_hooks.fp16_compress_hook, default_hooks.bf16_compress_hook):
    model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda(), device_ids=[0])
    model.register_comm_hook(None, hook)
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    assert model.module.weight.grad.tolist() == [[1, 1], [1, 1]]
state = {"w": torch.ones(3, device="cuda"), "step": 4}
dcp.save(state, checkpoint_id=os.path.join(folder.name, "checkpoint"))
found = {"w": torch.zeros(3, device="cuda"), "step": 0}
dcp.load(found, checkpoint_id=os.path.join(folder.name, "checkpoint"))
assert found["w"].is_cuda and found["w"].tolist() == [1, 1, 1] and found["step"] == 4
dist.destroy_process_group()
ids = list(range(torch.cuda.device_count()))
parallel = torch.nn.DataParallel(torch.nn.Linear(4, 2).cuda(), device_ids=ids)
assert parallel(torch.ones(4, 4, device="cuda")).shape == (4, 2)
print("OK")
