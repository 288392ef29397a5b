"""torch.cuda.memory, telemetry and the runtime's calls: numbers of the right kind, without contradictions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "unit" / "data" / "smi"

NUMBERS = """
import io, pickle, torch
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total and torch.cuda.cudart().cudaMemGetInfo(0)[1] == total
assert torch.cuda.device_memory_used() <= total and 0 <= torch.cuda.memory_usage() <= 100
x = torch.zeros(1 << 20, device="cuda")
for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
    assert type(getattr(torch.cuda, name)()) is int, name
stats = torch.cuda.memory_stats("cuda:0")
assert stats["allocated_bytes.all.current"] == torch.cuda.memory_allocated() and stats["num_ooms"] == 0
assert torch.cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["peak"] == torch.cuda.max_memory_allocated(0)
assert "memory summary" in torch.cuda.memory_summary(device="cuda", abbreviated=True)
assert isinstance(torch.cuda.memory_snapshot(), list) and "segments" in torch.cuda.memory._snapshot()
assert isinstance(torch.cuda.memory_snapshot(include_traces=True), list)
assert isinstance(torch.cuda.host_memory_stats(), dict)
torch.cuda.reset_peak_memory_stats("cuda:0"); torch.cuda.reset_accumulated_memory_stats()
torch.cuda.reset_peak_host_memory_stats(); torch.cuda.ipc_collect(); torch.cuda.empty_cache()
torch.cuda.set_per_process_memory_fraction(0.5, device=torch.device("cuda"))
assert torch.cuda.get_per_process_memory_fraction() == 0.5
torch.cuda.set_per_process_memory_fraction(1.0)
torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(4096, device="cuda:0"))
torch.cuda.caching_allocator_enable(True)
with torch.cuda.caching_allocator_disabled() if hasattr(torch.cuda, "caching_allocator_disabled") else torch.no_grad():
    torch.ones(1, device="cuda")
try:
    torch.cuda.caching_allocator_enable(False)
except NotImplementedError as error:
    assert "caching_allocator_enable is not supported on" in str(error)
else:
    raise AssertionError("switched off?")
assert torch.cuda.get_allocator_backend() == "native"
torch.cuda.memory._set_memory_metadata("step 3")
assert torch.cuda.memory._get_memory_metadata() == "step 3"
torch.cuda.memory._dump_snapshot(filename="snapshot.pickle")
assert "segments" in pickle.load(open("snapshot.pickle", "rb"))
runtime = torch.cuda.cudart()
assert runtime.cudaGetErrorString(0) == "no error" and runtime.cudaGetErrorString(12345)
assert runtime.cudaProfilerStart() == runtime.cudaError.success == 0 == int(runtime.cudaProfilerStop())
y = torch.ones(1024)
registered = int(runtime.cudaHostRegister(y.data_ptr(), 4096, 0))
assert registered == 801 or registered == 0 == int(runtime.cudaHostUnregister(y.data_ptr()))
torch.cuda.check_error(0)
try:
    torch.cuda.check_error(2)
except torch.cuda.CudaError as error:
    assert str(error) == "out of memory (2)"
assert torch.cuda.cudaStatus.SUCCESS == 0 and issubclass(torch.cuda.DeferredCudaCallError, Exception)
assert torch.cuda.OutOfMemoryError is torch._C.OutOfMemoryError
"""

TELEMETRY = """
import torch
assert torch.cuda.temperature() == 33 and torch.cuda.power_draw(0) == 91300 and torch.cuda.temperature("cuda:1") == 41
assert torch.cuda.power_draw(device=torch.device("cuda", 1)) == 271100 and type(torch.cuda.power_draw()) is int
assert "no processes are running" in torch.cuda.list_gpu_processes()
assert "1234 uses    60704.000 MB" in torch.cuda.list_gpu_processes(device=1)
assert 0 <= torch.cuda.utilization() <= 100 and type(torch.cuda.utilization()) is int
assert torch.cuda.current_device() == 0
"""

NPU_SMI = """#!{shell}
if [ "$2" = -m ]
then printf 'NPU ID  Chip ID  Chip Logic ID  Chip Name\\n0 0 0 Ascend 910B4\\n1 0 1 Ascend 910B4\\n'
else cat {folder}/npu_info_910b.txt
fi
"""

UNKNOWN = """
import torch
try:
    torch.cuda.temperature()
except RuntimeError as error:
    assert "the temperature in °C of device 0 is not known" in str(error) and {tool!r} in str(error), error
else:
    raise AssertionError("a temperature?")
assert torch.cuda.list_gpu_processes().startswith("GPU:0") and 0 <= torch.cuda.utilization() <= 100
"""


def test_numbers(backend, run_isolated, tmp_path):
    run_isolated(NUMBERS, backend=backend, cwd=tmp_path).ok()


@pytest.mark.parametrize(("backend", "tool"), [("ascend", "npu-smi was not found"), ("cpu", "CPU has no tool")])
def test_what_cannot_be_known_is_said(backend, tool, run_isolated):
    run_isolated(UNKNOWN.replace("{tool!r}", repr(tool)), backend=backend).ok()


def test_telemetry_comes_from_the_vendors_tool(run_isolated, tmp_path):
    tool = tmp_path / "npu-smi"
    tool.write_text(NPU_SMI.format(shell=shutil.which("sh"), folder=SAMPLES), encoding="utf-8")
    tool.chmod(0o755)
    run_isolated(TELEMETRY, env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}).ok()
