# Must hold: device tensors go through torch.multiprocessing's queues and arguments, and pools start accelerator workers.
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import torch
import torch.multiprocessing as mp


def double(queue_in, queue_out, given, done):
    assert given.is_cuda and given.tolist() == [4.0]
    x = queue_in.get()
    assert x.is_cuda and x.requires_grad is False
    queue_out.put(x * 2)
    done.wait(60)


def on_device(i):
    return torch.ones(2, device="cuda").mul(i).sum().item()


def main():
    ctx = mp.get_context("spawn")
    there, back, done = ctx.Queue(), ctx.Queue(), ctx.Event()
    given = torch.full((1,), 4.0, device="cuda")
    child = ctx.Process(target=double, args=(there, back, given, done))
    child.start()
    x = torch.ones(3, device="cuda")
    there.put(x)
    y = back.get(timeout=60)
    assert y.is_cuda and y.tolist() == [2.0, 2.0, 2.0]
    del y
    done.set()
    child.join(60)
    assert child.exitcode == 0, child.exitcode
    model = torch.nn.Linear(2, 2).cuda()
    model.share_memory()
    torch.cuda.ipc_collect()
    for method in ("spawn", "forkserver"):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            assert list(pool.map(on_device, [1, 2])) == [2.0, 4.0]
    with mp.get_context("spawn").Pool(1) as pool:
        assert pool.map(on_device, [3]) == [6.0]


if __name__ == "__main__":
    main()
    print("OK")
