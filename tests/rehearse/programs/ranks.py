"""Starts ranks of itself and runs one scenario over HCCL: collectives, training, a peer that dies, a call that fails."""

import os
import socket
import subprocess
import sys

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401


def collectives(rank, ranks, device):
    def filled(value, count=2):
        return torch.full((count,), float(value), device=device)

    x = filled(rank + 1)
    dist.all_reduce(x)
    assert x[0].item() == sum(range(1, ranks + 1))
    for dtype in (torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8):
        x = torch.ones(3, device=device).to(dtype)
        dist.all_reduce(x)
        assert x.tolist() == [ranks] * 3
    for operation, wanted in ((dist.ReduceOp.MAX, ranks), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.PRODUCT, 2)):
        x = filled(rank + 1)
        dist.all_reduce(x, op=operation)
        assert x[0].item() == wanted
    large = torch.ones(3_000_000, device=device)
    dist.all_reduce(large)
    assert large.unique().tolist() == [ranks]
    parts = [torch.empty(2, device=device) for _ in range(ranks)]
    dist.all_gather(parts, filled(rank))
    assert [p[0].item() for p in parts] == list(range(ranks))
    x = filled(rank)
    dist.broadcast(x, 1)
    assert x[0].item() == 1
    objects = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(ranks)]
    if rank == 0:
        dist.send(filled(7), 1)
    else:
        x = filled(0)
        dist.recv(x, 0)
        assert x[0].item() == 7
    x = torch.empty(ranks, device=device)
    dist.all_to_all_single(x, torch.arange(ranks, device=device).float())
    assert x.tolist() == [rank] * ranks
    x = filled(0)
    dist.scatter(x, [filled(r) for r in range(ranks)] if rank == 0 else None, src=0)
    assert x[0].item() == rank
    dist.reduce(x, 0)


def training(rank, ranks, device):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2)).to(device)
    model = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    torch.manual_seed(rank)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(16, 8, device=device)).pow(2).mean().backward()
        optimizer.step()
    weights = [torch.empty_like(net[0].weight) for _ in range(ranks)]
    dist.all_gather(weights, net[0].weight.detach())
    assert torch.equal(*weights)


def dying(rank, ranks, device):
    dist.all_reduce(torch.ones(2, device=device))
    if rank == 1:
        os._exit(7)
    expect_error(device, "error code is 9")


def failing(rank, ranks, device):
    os.environ["FLAGOS_SHIM_REHEARSE_FAIL"] = "HcclAllReduce:6"
    expect_error(device, "error code is 6")
    os.environ["FLAGOS_SHIM_REHEARSE_FAIL"] = ""


def expect_error(device, text):
    try:
        dist.all_reduce(torch.ones(2, device=device))
        torch.npu.synchronize()
    except RuntimeError as error:
        assert f"OPS function error: HcclAllreduce, {text}" in str(error), error
    else:
        raise AssertionError("no error")


def main(scenario):
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    globals()[scenario](rank, ranks, f"npu:{rank}")
    print(f"{scenario} on rank {rank}: ok\n", end="", flush=True)  # one write, so that lines do not mix
    if scenario == "dying":
        os._exit(0)  # without its peer, the group cannot be left in order
    dist.destroy_process_group()


if "RANK" in os.environ:
    main(sys.argv[1])
else:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, *sys.argv]
    children = [subprocess.Popen(command, env={**shared, "RANK": str(rank)}) for rank in range(2)]
    print("exit codes", [child.wait() for child in children])
