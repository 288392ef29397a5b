"""A rehearsed program prints what it prints, and nothing else."""

from __future__ import annotations

from .conftest import Run


def test_plain_training_prints_nothing_of_its_own(run: Run) -> None:
    code = """
        import torch, torch_npu
        from torch import nn
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).to("npu")
        optimizer, scaler = torch.optim.AdamW(net.parameters()), torch.amp.GradScaler("npu")
        data = torch.utils.data.TensorDataset(torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,)))
        for x, y in torch.utils.data.DataLoader(data, 8, shuffle=True, num_workers=1, pin_memory=True):
            optimizer.zero_grad()
            with torch.autocast("npu", dtype=torch.float16):
                loss = nn.functional.cross_entropy(net(x.to("npu", non_blocking=True)), y.to("npu"))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        torch.npu.synchronize()
        print("done", torch.npu.max_memory_allocated() > 0)
    """
    done = run(code)
    assert (done.stdout, done.stderr) == ("done True\n", "")


def test_marks_for_a_trace_print_nothing(run: Run) -> None:
    code = """
        import torch, torch_npu
        torch_npu.npu.mstx.mark("a mark")
        torch_npu.npu.mstx.mark("on a stream", torch.npu.current_stream())
        torch_npu.npu.mstx.range_push("a range")
        torch_npu.npu.mstx.range_pop()
        torch_npu.npu.mstx.range_end(torch_npu.npu.mstx.range_start("another"))
    """
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_devices_statistics_start_at_nothing(run: Run) -> None:
    code = """
        import torch, torch_npu
        torch.npu.init()
        stats = torch.npu.memory_stats()
        print(sorted(name for name, value in stats.items() if value and name != "max_split_size"))
        print(torch.npu.mem_get_info()[0] == torch.npu.mem_get_info()[1])
    """
    assert run(code).stdout.splitlines() == ["[]", "True"]
