# Must hold: events that cannot be timed say so as CUDA's do; priorities, nesting and unused interprocess events are harmless.
import torch

untimed = torch.cuda.Event(), torch.cuda.Event()
for event in untimed:
    event.record()
torch.cuda.synchronize()
for start, end in (untimed, (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))):
    try:
        start.elapsed_time(end)  # not made for timing; not recorded
    except (ValueError, RuntimeError):
        pass
    else:
        raise AssertionError("a time between events that have none")
event = torch.cuda.Event(enable_timing=False, blocking=True, interprocess=True)
event.record()
event.synchronize()
low, high = torch.cuda.Stream.priority_range()
assert low >= high
urgent = torch.cuda.Stream(priority=high)
assert torch.cuda.Stream().priority >= urgent.priority
before = torch.cuda.current_stream()
a, b = torch.cuda.Stream(device="cuda:0"), torch.cuda.Stream(torch.device("cuda", 0))
with torch.cuda.stream(a):
    with torch.cuda.stream(b):
        assert torch.cuda.current_stream() == b
    assert torch.cuda.current_stream() == a
try:
    with torch.cuda.stream(a):
        raise KeyError
except KeyError:
    assert torch.cuda.current_stream() == before
assert torch.get_device_module() is torch.cuda
assert torch.get_device_module(torch.zeros(1, device="cuda").device) is torch.cuda
print("OK")
