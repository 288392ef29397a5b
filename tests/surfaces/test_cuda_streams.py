"""Streams, events, graphs, marks: the vendor's classes stay classes, and take what CUDA's take."""

from __future__ import annotations

import pytest

STREAMS = """
import time, torch
Stream, Event = torch.cuda.Stream, torch.cuda.Event
assert isinstance(Stream, type) and isinstance(Event, type) and issubclass(torch.cuda.ExternalStream, Stream)
assert torch.cuda.streams.Stream is Stream and torch.cuda.streams.Event is Event


class Named(Stream):
    def title(self):
        return "mine"


class Timed(Event):
    pass


mine, timed = Named(), Timed(enable_timing=True)
assert isinstance(mine, Stream) and mine.title() == "mine" and isinstance(timed, Event)
first, main = torch.cuda.current_stream(), torch.cuda.default_stream()
assert isinstance(first, Stream) and first == main == torch.cuda.current_stream("cuda:0") and first != mine
assert first == torch.cuda.default_stream(torch.device("cuda", 0)) and hash(first) == hash(main)
for made in (Stream(device="cuda:0", priority=-1), Stream(0), Stream(torch.device("cuda")), Stream(device=None)):
    with torch.cuda.stream(made) as nothing:
        assert torch.cuda.current_stream() == made and nothing is None
    assert torch.cuda.current_stream() == first
with torch.cuda.stream(mine), torch.cuda.stream(None):
    assert torch.cuda.current_stream() == mine
assert isinstance(torch.cuda.stream(mine), torch.cuda.StreamContext)
torch.cuda.set_stream(mine)
assert torch.cuda.current_stream() == mine
torch.cuda.set_stream(first)
torch.cuda._set_stream_by_id(stream_id=mine.stream_id, device_index=mine.device_index, device_type=mine.device_type)
assert torch.cuda.current_stream() == mine
torch.cuda.set_stream(None)
assert torch.cuda.current_stream() == mine
torch.cuda.set_stream(first)
assert type(mine.cuda_stream) is int and mine.__cuda_stream__()[0] == 0 if hasattr(mine, "__cuda_stream__") else True

start, end = Event(enable_timing=True), Event(True, False, False)
start.record()
x = torch.ones(8, device="cuda") * 2
time.sleep(0.02)
end.record(torch.cuda.current_stream())
end.synchronize(); torch.cuda.synchronize(); torch.cuda.synchronize("cuda:0")
assert end.query() is True and 15 < start.elapsed_time(end) < 5000
mine.wait_stream(first); mine.wait_event(end); end.wait(mine); end.wait()
assert isinstance(first.record_event(), Event) and first.record_event(end) is end
first.synchronize()
assert first.query() in (True, False) and x.sum().item() == 16
Event(external=False)
x.record_stream(mine)
"""

GRAPHS = """
import torch
assert isinstance(torch.cuda.CUDAGraph, type) and isinstance(torch.cuda.graph, type)
assert torch.cuda.is_current_stream_capturing() is False
for use in (lambda: torch.cuda.CUDAGraph(keep_graph=False), torch.cuda.CUDAGraph, torch.cuda.graph_pool_handle):
    try:
        use()
    except NotImplementedError as error:
        assert str(error).startswith("torch.cuda.") and "is not supported on CPU: run the step eagerly" in str(error)
try:
    torch.cuda.CUDAGraph(keep_graph=True)
except NotImplementedError as error:
    assert "run the step eagerly" in str(error)
else:
    raise AssertionError("kept?")


class Mine(torch.cuda.CUDAGraph):
    pass


try:
    Mine()
except NotImplementedError:
    pass
"""

MARKS = """
import torch
from torch.cuda import nvtx
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as recorded:
    depth = nvtx.range_push("outer range")
    nvtx.range_push("inner range")
    nvtx.mark("a mark"); nvtx.mark(msg="named"); nvtx.mark("")
    with nvtx.range("block {}", 3), torch.cuda.profiler.profile():
        torch.ones(3).sum()
    nvtx.range_pop()
    nvtx.range_pop()
    nvtx.range_pop()
    nvtx.range_end(nvtx.range_start("open"))
    nvtx.range_end(range_id=12345)
    nvtx._device_range_end(nvtx._device_range_start("device", 0), 0)
if torch.cuda.get_device_name() == "CPU":
    names = {event.key for event in recorded.key_averages()}
    assert {"outer range", "inner range", "a mark", "named", "block 3", "open"} <= names, names
    assert depth == 0
"""

COMPILED = """
import torch
x, side = torch.zeros(2, device="cuda"), torch.cuda.Stream()


@torch.compile(backend="eager", fullgraph=True)
def asked(x):
    if not torch.cuda.is_available() or torch.cuda.device_count() < 1:
        return x - 1
    with torch.cuda.device(0):
        x = x + torch.cuda.current_device()
    properties = torch.cuda.get_device_properties(0)
    return x + min(properties.major, 1) + min(torch.cuda.get_device_capability()[0], 1)


@torch.compile(backend="eager")
def beside(x):
    with torch.cuda.stream(side):
        y = x + 2
    torch.cuda.current_stream().wait_stream(side)
    return y


assert asked(x).tolist() == [2, 2] and beside(x).tolist() == [2, 2]
"""


@pytest.mark.parametrize("code", [STREAMS, GRAPHS, MARKS, COMPILED], ids=["streams", "graphs", "marks", "compiled"])
def test_streams_graphs_marks(code, backend, run_isolated):
    run_isolated(code, backend=backend).ok()
