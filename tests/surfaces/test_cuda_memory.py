"""torch.cuda.memory, telemetry and the runtime's calls: numbers of the right kind, without contradictions."""

from __future__ import annotations

import pytest

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
    assert str(error).endswith("out of memory (2)")
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
assert torch.cuda.clock_rate() == 1650 and torch.cuda.clock_rate(1) == 800 and type(torch.cuda.clock_rate()) is int
assert torch.cuda.current_device() == 0
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


def test_telemetry_comes_from_the_vendors_tool(run_isolated, with_npu_smi):
    run_isolated(TELEMETRY, env=with_npu_smi).ok()
    chosen = "import torch; assert torch.cuda.clock_rate() == 800 and torch.cuda.temperature() == 41"
    run_isolated(chosen, env={**with_npu_smi, "CUDA_VISIBLE_DEVICES": "1"}).ok()


# What a CUDA program may say to CUDA's allocator, and no other takes; torch itself reads these variables, too.
CUDA_ONLY = (
    "backend:cudaMallocAsync,pinned_use_cuda_host_register:True,release_lock_on_cudamalloc:True,"
    "pinned_num_register_threads:4,graph_capture_record_stream_reuse:True,throw_on_cudamalloc_oom:True"
)
STARTED = """
import json, os, torch, flagos_shim
x = torch.ones(2, device="cuda").sum().item()
status = flagos_shim.status()
flagos_shim.deactivate()
print(json.dumps([x, status["dropped"], {name: os.environ[name] for name in status["dropped"]}]))
"""


@pytest.mark.parametrize("backend", ["ascend", "mlu"])
@pytest.mark.parametrize("variable", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"])
def test_options_of_cudas_allocator_do_not_keep_a_device_from_starting(run_isolated, backend, variable):
    value = f"{CUDA_ONLY},roundup_power2_divisions:[256:1,512:2,>:4],max_split_size_mb:64"
    done = run_isolated(STARTED, backend=backend, env={variable: value})
    total, dropped, after = done.json
    assert total == 2.0 and list(dropped) == [variable] and after == {variable: value}
    assert ",".join(dropped[variable]).startswith(CUDA_ONLY)
    assert done.stderr.count("has no counterpart of backend:cudaMallocAsync, ") == 1


def test_options_set_by_the_script_itself_count_as_those_of_the_environment(run_isolated):
    code = "import os, torch\nos.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'backend:native,max_split_size_mb:64'\n"
    for ask in ("", "assert torch.cuda.is_available()\n"):
        total, dropped, after = run_isolated(code + ask + STARTED, backend="ascend").json
        assert total == 2.0 and dropped == {"PYTORCH_CUDA_ALLOC_CONF": ["backend:native"]}
        assert after == {"PYTORCH_CUDA_ALLOC_CONF": "backend:native,max_split_size_mb:64"}
