# Must hold: profiling with CUDA activities runs, its tables sort by the CUDA keys, and its files are written.
import json
import os
import tempfile
import warnings

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

KEYS = ("cuda_time_total", "self_cuda_time_total", "device_time_total", "self_device_time_total", "cpu_time_total")


def work():
    x = torch.randn(16, 16, device="cuda")
    with record_function("block"):
        return (x @ x).sum().item()


assert ProfilerActivity.CUDA in torch.profiler.supported_activities()
both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
with profile(activities=both, record_shapes=True, profile_memory=True, with_stack=True) as p:
    work()
averages = p.key_averages()
assert {"block", "aten::mm"} <= {event.key for event in averages}
for key in KEYS:
    assert "aten::mm" in averages.table(sort_by=key, row_limit=-1), key
assert all(event.device_time_total >= 0 for event in averages)
p.key_averages(group_by_input_shape=True).table(sort_by="self_cuda_time_total")
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "trace.json")
    p.export_chrome_trace(file)
    with open(file) as f:
        assert any(event.get("name") == "aten::mm" for event in json.load(f)["traceEvents"])
    tables = []

    def ready(prof):
        tables.append(prof.key_averages().table(sort_by="cuda_time_total", row_limit=3))
        tensorboard_trace_handler(folder)(prof)

    steps = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(activities=both, schedule=steps, on_trace_ready=ready) as p:
        for _ in range(5):
            work()
            p.step()
    assert len(tables) == 1 and len(os.listdir(folder)) == 2
for activities in ([ProfilerActivity.CUDA], None):
    with profile(activities=activities) as p:
        work()
    assert isinstance(p.key_averages().table(sort_by="cuda_time_total"), str)
for how in ({"use_device": "cuda"}, {"use_cuda": True}):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with torch.autograd.profiler.profile(**how) as p:
            work()
    assert "aten::mm" in p.key_averages().table(sort_by="self_cuda_time_total", row_limit=-1)
with torch.cuda.profiler.profile(), torch.autograd.profiler.emit_nvtx():
    work()
print("OK")
