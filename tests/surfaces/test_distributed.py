"""``torch.distributed`` over the vendor's collectives, by two real processes that torchrun starts."""

from __future__ import annotations

import pytest

TRAIN = """
import os, sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank % torch.cuda.device_count())
assert dist.is_nccl_available() and dist.is_backend_available("nccl")
dist.init_process_group(sys.argv[1])
if sys.argv[2] != "cpu":
    asked = sys.argv[1].replace("flagos", "nccl")
    assert dist.get_backend() == asked and "nccl" in dist.get_backend(), dist.get_backend()
    assert {asked: 1}[dist.get_backend()] == 1 and not dist.get_backend() != asked
x = torch.full((3,), float(rank + 1), device="cuda")
dist.all_reduce(x)
assert x.tolist() == [3.0] * 3
gathered = [torch.zeros(1, device="cuda") for _ in range(2)]
dist.all_gather(gathered, torch.full((1,), float(rank), device="cuda"))
assert [t.item() for t in gathered] == [0.0, 1.0]
objects = [None, None]
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": 0}, {"rank": 1}]
group = dist.new_group([0, 1], backend="nccl")
dist.broadcast(x, 0, group=group)
dist.barrier()
torch.manual_seed(0)
model = DDP(torch.nn.Linear(2, 1).cuda(), device_ids=[torch.cuda.current_device()])
model(torch.full((4, 2), float(rank), device="cuda")).sum().backward()
assert model.module.weight.grad.tolist() == [[2.0, 2.0]], model.module.weight.grad     # mean of 0 and 4
if sys.argv[2] != "cpu":
    mesh = dist.init_device_mesh("cuda", (2,))
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
    torch.manual_seed(0)
    wrapped = FSDP(torch.nn.Linear(4, 4), device_id=torch.cuda.current_device())
    loss = wrapped(torch.ones(2, 4, device="cuda")).sum()
    loss.backward()
    torch.manual_seed(0)
    second = torch.nn.Linear(4, 4).cuda()
    fully_shard(second, mesh=mesh)
    other = second(torch.ones(2, 4, device="cuda")).sum()
    other.backward()
    assert abs(loss.item() - other.item()) < 1e-5
dist.destroy_process_group()
print("OK", flush=True)
os._exit(0)  # torch's own threads may abort an interpreter that ends while they do ("terminate called without ...")
"""


@pytest.mark.parametrize(
    ("backend", "spec"),
    [
        ("ascend", "nccl"),
        ("ascend", "cpu:gloo,cuda:nccl"),
        ("ascend", "flagos"),
        ("mlu", "nccl"),
        ("musa", "cpu:gloo,cuda:nccl"),
        ("cpu", "nccl"),
        ("cpu", "cpu:gloo,cuda:nccl"),
    ],
)
def test_two_processes(backend, spec, run_isolated, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    run = run_isolated(
        None,
        backend=backend,
        flags=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script), spec, backend),
    )
    assert run.ok().stdout.count("OK") == 2, run.stderr[-3000:]


def test_a_peer_that_dies_is_a_backend_error_and_not_a_hang(run_isolated, tmp_path):
    script = tmp_path / "dies.py"
    script.write_text("""
import multiprocessing, os, sys
import torch, torch.distributed as dist


def run(rank, store, answers):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="file://" + store, rank=rank, world_size=2)
    x = torch.ones(1, device="cuda")
    dist.all_reduce(x)
    if rank == 1:
        os._exit(3)
    try:
        dist.all_reduce(x)
        torch.cuda.synchronize()
    except dist.DistBackendError as error:
        answers.put([type(error).__name__, error.vendor, error.category, str(error)])
    except Exception as error:
        answers.put([type(error).__name__, None, None, str(error)])
    answers.close(), answers.join_thread()
    os._exit(0)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    ranks = [context.Process(target=run, args=(rank, sys.argv[1], answers)) for rank in range(2)]
    [p.start() for p in ranks]
    answer = answers.get(timeout=120)
    [p.join(30) for p in ranks]
    assert answer[:2] == ["DistBackendError", "ascend"] and "HCCL" in answer[3], answer
    print("OK")
""")
    run = run_isolated(script, args=[str(tmp_path / "store")], env={"FLAGOS_SHIM_REHEARSE_HCCL_TIMEOUT": "3"})
    assert run.ok().stdout.split()[-1] == "OK"


GROUP_CLASS = """
import datetime, sys, torch, torch.distributed as dist
options = dist.ProcessGroupNCCL.Options()
options._timeout = datetime.timedelta(seconds=30)
assert dist.ProcessGroupNCCL.Options(is_high_priority_stream=True).is_high_priority_stream
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, pg_options=options)
group = dist.group.WORLD._get_backend(torch.device("cuda"))
assert isinstance(group, dist.ProcessGroupNCCL) and dist.ProcessGroupNCCL.__name__ == sys.argv[1]
assert torch.flagos_info()["toolkit_version"] == (torch.version.musa if sys.argv[2] == "musa" else None)
"""


@pytest.mark.parametrize(("backend", "name"), [("mlu", "ProcessGroupCNCL"), ("musa", "ProcessGroupMCCL")])
def test_the_class_of_the_process_group_is_the_vendors(run_isolated, backend, name):
    run_isolated(GROUP_CLASS, backend=backend, args=(name, backend)).ok()
