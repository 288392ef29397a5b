"""Device errors that are copied, come from other processes, belong to a vendor's own class, or were queued."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

RAISED = """
import os, torch
torch.ones(1, device="cuda")


def caught(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("no error")


def broken(function, call):
    os.environ["FLAGOS_SHIM_REHEARSE_FAIL"] = function
    try:
        return caught(call)
    finally:
        os.environ["FLAGOS_SHIM_REHEARSE_FAIL"] = ""


def throw(text):
    raise RuntimeError(text)


ERRORS = [
    broken("aclrtSynchronizeDeviceWithTimeout:507035", torch.cuda.synchronize),
    caught(lambda: torch.zeros(1, device="cuda:9")),
    caught(lambda: torch.cuda.set_device(99)),
    caught(lambda: torch.empty(1 << 50, dtype=torch.uint8, device="cuda")),
    caught(lambda: torch.sparse.mm(torch.eye(2).to_sparse().cuda(), torch.ones(2, 2).cuda())),
    caught(lambda: throw("f:x:1 NPU function error: foo, error code is 500001")),
    caught(lambda: throw("HCCL allreduce: Unsupported data type at::kBool")),
]
assert {type(e).__name__ for e in ERRORS} == {
    "AcceleratorError", "OutOfMemoryError", "NotImplementedError", "RuntimeError"
}, ERRORS
assert all(e.vendor == "ascend" and e.hint and e.category and isinstance(e.vendor_code, str) for e in ERRORS)
"""

COPIES = """
import copy, pickle
for error in ERRORS:
    for made in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error), type(error)(*error.args)):
        assert type(made) is type(error) and made.args == error.args and str(made) == str(error), made
        assert made.__dict__ == error.__dict__, (made.__dict__, error.__dict__)
        assert repr(made.__cause__) == repr(error.__cause__), (made.__cause__, error.__cause__)
    anew = RuntimeError(str(error))
    assert type(anew) is type(error) and anew.args == error.args and anew.__dict__ == error.__dict__, anew
"""

SHOWN = (
    "import json; print(json.dumps([[type(e).__name__, e.args, {k: v for k, v in vars(e).items() if k != '__notes__'}] "
    "for e in ERRORS]))"
)


def test_copies_equal_the_original(run_isolated):
    run_isolated(RAISED + COPIES).ok()


def test_an_interpreter_with_the_shim_inactive_or_not_installed_reads_the_same(run_isolated):
    sent = run_isolated(
        RAISED + "import base64, pickle\nprint(base64.b64encode(pickle.dumps(ERRORS)).decode())\n" + SHOWN
    )
    lines = sent.ok().stdout.splitlines()
    data, shown = lines[-2], json.loads(lines[-1])
    for first in ("", "import sys; sys.modules['flagos_shim'] = None\n"):
        code = f"{first}import base64, pickle, torch\nERRORS = pickle.loads(base64.b64decode({data!r}))\n{SHOWN}"
        environ = {k: v for k, v in os.environ.items() if not k.startswith("FLAGOS_")}
        environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        run = subprocess.run([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, text=True, check=True)
        assert json.loads(run.stdout.splitlines()[-1]) == shown


def test_from_the_workers_of_a_pool_and_of_a_loader(run_isolated, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text("""
import concurrent.futures, os, torch, multiprocessing


def fail():
    torch.ones(2, device="cuda")
    os.environ["FLAGOS_SHIM_REHEARSE_FAIL"] = "aclrtSynchronizeDeviceWithTimeout:507035"
    torch.cuda.synchronize()


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        if index or not hasattr(self, "call"):
            fail()
        self.call(9)


def seen(call):
    try:
        call()
    except RuntimeError as error:
        return error
    raise AssertionError("no error")


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        error = seen(pool.submit(fail).result)
        wrong = seen(pool.submit(torch.cuda.set_device, 9).result)
    assert type(error) is type(wrong) is torch.AcceleratorError
    assert (error.vendor_code, error.category) == ("507035", "execution"), vars(error)
    assert str(error).count("Vector core kernel failed") == 1, error
    assert (wrong.vendor, wrong.vendor_code, wrong.category) == ("ascend", "", "parameter") and wrong.hint
    data = Data()
    data.call = torch.cuda.set_device
    for data, begins in (Data(), "Vector core kernel failed ("), (data, "Invalid device ordinal. Caught Acc"):
        loader = torch.utils.data.DataLoader(data, num_workers=1, multiprocessing_context="spawn")
        error = seen(lambda: list(loader))
        assert type(error) is torch.AcceleratorError and str(error).startswith(begins), error
        assert error.vendor == "ascend" and error.category and error.hint and error.args[0].count("Caught") == 1
    print("OK")
""")
    assert run_isolated(script).ok().stdout.split()[-1] == "OK"


@pytest.mark.parametrize("backend", ["ascend", "mlu", "musa"])
def test_out_of_memory_in_torchscript(run_isolated, backend, tmp_path):
    script = tmp_path / "scripted.py"  # TorchScript reads the source
    script.write_text("""
import torch
@torch.jit.script
def f(x):
    return x + x * 2
x = torch.ones(6 << 20, device="cuda")
try:
    f(x)
except torch.cuda.OutOfMemoryError as error:
    assert error.category == "resource" and str(error).startswith("CUDA out of memory. Tried to allocate 2"), error
else:
    raise AssertionError("no error")
""")
    env = {"FLAGOS_SHIM_REHEARSE_MEMORY_MB": "64", "PRETEND_MEMORY_MB": "64"}
    run_isolated(script, backend=backend, env=env).ok()


# How a program reaches the vendor's counterpart of torch.cuda.CudaError, and what the vendor says of that number.
RESULTS = {
    "mlu": ("torch.mlu.check_error(632000)", "632000", "invalid argument (632000)"),
    "musa": ("torch.musa.core._lazy_init.check_error(101)", "101", "invalid device ordinal (101)"),
}


@pytest.mark.parametrize("backend", RESULTS)
def test_the_vendors_counterpart_of_cuda_error(backend, run_isolated):
    call, code, text = RESULTS[backend]
    run_isolated(
        f"""
import copy, pickle, torch
for call in (lambda: {call}, lambda: torch.cuda.check_error(2)):
    try:
        call()
    except torch.cuda.CudaError as error:
        caught = error
    else:
        raise AssertionError("no error")
    assert isinstance(caught, RuntimeError) and len(caught.args) == 1
    assert (caught.vendor, caught.category) == ({backend!r}, "execution") and caught.hint
    for made in (copy.copy(caught), copy.deepcopy(caught), pickle.loads(pickle.dumps(caught))):
        assert type(made) is type(caught) and made.args == caught.args and made.__dict__ == caught.__dict__
    if call.__code__.co_consts[-1] == 2:
        assert str(caught).endswith("out of memory (2)")
    else:
        assert caught.vendor_code == {code!r} and str(caught).endswith(". " + {text!r}), str(caught)
        assert str(caught.__cause__) == {text!r}
kind = torch.cuda.CudaError
import flagos_shim
flagos_shim.deactivate()
assert torch.cuda.CudaError is not kind and torch.cuda.CudaError.__module__ == "torch.cuda"
assert kind({code}).args == ({text!r},)
""",
        backend=backend,
    ).ok()


def test_a_queued_call_that_fails(backend, run_isolated):
    run_isolated(
        """
import torch
ran = []


def bad():
    ran.append(1)
    raise ValueError("queued here")


torch.cuda._lazy_call(bad)
try:
    torch.cuda.init()
except torch.cuda.DeferredCudaCallError as error:
    assert ran and "queued here" in str(error) and isinstance(error.__cause__, ValueError), error
else:
    raise AssertionError("no error")
""",
        backend=backend,
    ).ok()


def test_a_call_queued_with_torch_npu_itself(run_isolated):
    """Its code raises a class under a name that it does not define."""
    run_isolated("""
import torch
torch.npu._lazy_call(lambda: 1 / 0)
try:
    torch.cuda.init()
except torch.cuda.DeferredCudaCallError as error:
    assert "division by zero" in str(error) and isinstance(error.__cause__, ZeroDivisionError)
else:
    raise AssertionError("no error")
import flagos_shim
flagos_shim.deactivate()
assert not hasattr(torch.npu, "DeferredNpuCallError")
""").ok()


# Calls with an ordinal that does not exist; all of them raise torch's AcceleratorError on CUDA too.
ORDINALS = [
    "cuda.set_device(N)", "cuda.memory_allocated(N)", "cuda.synchronize(N)", "cuda.device(N).__enter__()",
    "cuda.current_stream(N)", "cuda.mem_get_info(N)", "cuda.reset_peak_memory_stats(N)", "cuda.utilization(N)",
    "cuda.set_per_process_memory_fraction(0.5, N)", "cuda.caching_allocator_alloc(4, N)",
]  # fmt: skip


def test_an_ordinal_that_does_not_exist(backend, run_isolated):
    run_isolated(
        f"""
import io, torch
from torch import cuda
N = 99
for call in {ORDINALS!r}:
    try:
        eval(call)
    except torch.AcceleratorError as error:
        assert (error.vendor, error.vendor_code, error.category) == ({backend!r}, "", "parameter"), (call, vars(error))
        assert "torch.cuda.device_count()" in error.hint and error.__cause__ is None, call
        assert str(error).startswith("CUDA error: invalid device ordinal\\nDevice 99 was asked for, there "), error
    else:
        raise AssertionError(f"{{call}}: no error")
""",
        backend=backend,
    ).ok()


@pytest.mark.parametrize("call", ["zeros(1, device='cuda:9')", "zeros(1).to('cuda:9')", "zeros(1).cuda(9)"])
def test_what_is_printed_ends_in_the_programs_own_frame(call, run_isolated, tmp_path):
    script = tmp_path / "user.py"
    script.write_text(f"import torch\n\n\ndef step():\n    return torch.{call}\n\n\nstep()\n")
    run = run_isolated(script)
    assert run.returncode == 1 and "torch.AcceleratorError: Invalid device ordinal (" in run.stderr
    frames = [line for line in run.stderr.splitlines() if line.startswith('  File "')]
    assert frames[-1] == f'  File "{script}", line 5, in step', frames
    assert "_shim" not in "".join(frames)


def test_a_hook_that_is_in_place_is_asked_and_comes_back(run_isolated, tmp_path):
    script = tmp_path / "hook.py"
    script.write_text("""
import sys
def hook(kind, value, traceback):
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    print(kind.__name__, traceback.tb_frame.f_code.co_name)
sys.excepthook = hook
import torch, flagos_shim
def call():
    flagos_shim.activate("cpu")
    assert sys.excepthook is not hook
    flagos_shim.deactivate()
    assert sys.excepthook is hook
    flagos_shim.activate("cpu")
    torch.cuda.set_device(99)
call()
""")
    run = run_isolated(script, backend=None, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert run.stdout.splitlines()[-1] == "AcceleratorError call", run
