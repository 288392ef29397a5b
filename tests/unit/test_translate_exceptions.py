"""The new exception itself: who catches it, what it carries, where its traceback ends, how it travels."""

import os
import pickle
import subprocess
import sys
import traceback

import pytest

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
import torch
import torch.utils.data

from flagos_shim._translate import carried_text, normalise_out_of_memory, translate
from flagos_shim.vendors._ascend_errors import ERROR_CODES, ERRORS

NPU = (
    "NPU out of memory. Tried to allocate 72.00 MiB (NPU 0; 61.27 GiB total capacity; 5.04 MiB free; 58.39 GiB "
    "reserved in total by PyTorch).If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
    "fragmentation."
)
FAULT = "f:build/x.ts:5 NPU function error: AclrtSynchronizeStream, error code is 507035\n[ERROR] 2025-04-29-18:46:11 "
FAULT += "(PID:1, Device:0, RankID:-1) ERR00100 PTA call acl api failed\nEZ9999: Inner Error!"


def translated(exc):
    return translate(exc, "ascend", ERRORS, ERROR_CODES)


def accelerate_would_retry(exc):
    """The condition of accelerate.utils.memory.should_reduce_batch_size, restated."""
    return isinstance(exc, RuntimeError) and len(exc.args) == 1 and "CUDA out of memory." in exc.args[0]


def lightning_would_retry(exc):
    """The condition of Lightning's and toma's is_cuda_out_of_memory (Ray looks for the same words), restated."""
    one = isinstance(exc, RuntimeError) and len(exc.args) == 1
    return one and "CUDA" in exc.args[0] and "out of memory" in exc.args[0]


def detectron_would_retry(exc):
    """detectron2's retry_if_cuda_oom looks for the sentence with the blank behind it."""
    return "CUDA out of memory. " in str(exc)


@pytest.mark.parametrize("would_retry", [accelerate_would_retry, lightning_would_retry, detectron_would_retry])
def test_retry_helpers_recognise_it(would_retry):
    assert not would_retry(RuntimeError(NPU))
    assert would_retry(translated(RuntimeError(NPU)))
    assert would_retry(torch.OutOfMemoryError(normalise_out_of_memory(NPU)))


def test_is_caught_as_cuda_programs_catch_it():
    with pytest.raises(torch.cuda.OutOfMemoryError):
        raise translated(RuntimeError(NPU))
    with pytest.raises(RuntimeError):
        raise translated(RuntimeError(FAULT))


def test_attributes_cause_and_hint():
    old = RuntimeError(FAULT)
    new = translated(old)
    assert new.__cause__ is old
    assert (new.vendor, new.vendor_code, new.category) == ("ascend", "507035", "execution")
    assert "ASCEND_LAUNCH_BLOCKING=1" in new.hint
    assert str(new) == f"Vector core kernel failed (ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, 507035). {FAULT}"
    if hasattr(torch, "AcceleratorError"):
        assert type(new) is torch.AcceleratorError
        assert new.error_code == 507035
    if sys.version_info >= (3, 11):
        assert f"Hint: {new.hint}" in "".join(traceback.format_exception(new))


def test_translating_twice_is_translating_once():
    new = translated(RuntimeError(FAULT))
    assert translated(new) is new
    assert translate(new, "mlu", (), {}) is new


def test_traceback_still_ends_in_the_users_frame():
    def users_line():
        raise RuntimeError(FAULT)

    def boundary():
        try:
            users_line()
        except RuntimeError as error:
            raise translated(error)  # noqa: B904  translate has set the cause

    with pytest.raises(RuntimeError) as caught:
        boundary()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "users_line"


def test_a_text_normalised_at_construction_gets_its_attributes_later():
    raised = torch.OutOfMemoryError(normalise_out_of_memory(NPU))
    new = translated(raised)
    assert new is not raised
    assert type(new) is torch.OutOfMemoryError
    assert new.args == raised.args
    assert new.category == "resource"


def test_the_plugins_out_of_memory_stays_one_whatever_its_text_says():
    new = translated(torch.OutOfMemoryError(FAULT))
    assert type(new) is torch.OutOfMemoryError
    assert str(new).startswith("CUDA out of memory. Tried to allocate ")
    assert (new.vendor_code, new.category) == ("507035", "resource")


@pytest.mark.parametrize("text", [NPU, FAULT])
def test_pickle_keeps_class_text_and_attributes(text):
    new = translated(RuntimeError(text))
    back = pickle.loads(pickle.dumps(new))
    assert type(back) is type(new)
    assert back.args == new.args
    assert (back.vendor, back.vendor_code, back.category, back.hint) == (
        new.vendor, new.vendor_code, new.category, new.hint,
    )  # fmt: skip
    assert translated(back) is back


def test_a_pickled_exception_loads_without_this_package():
    data = pickle.dumps(translated(RuntimeError(FAULT)))
    program = (
        "import sys, pickle; sys.modules['flagos_shim'] = None\n"
        f"e = pickle.loads({data!r})\n"
        "print(type(e).__name__, e.vendor, e.vendor_code, e.category, isinstance(e, RuntimeError))"
    )
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
    environment.pop("FLAGOS_DEVICE_BACKEND", None)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300)
    assert done.stdout.split()[1:] == ["ascend", "507035", "execution", "True"], done.stderr


class Failing(torch.utils.data.Dataset):
    """A data set whose items fail with a given text, in a given class, in the worker process."""

    def __init__(self, text, translating):
        self.text, self.translating = text, translating

    def __len__(self):
        return 2

    def __getitem__(self, index):
        error = RuntimeError(self.text)
        raise translated(error) if self.translating else error


@pytest.mark.parametrize("translating", [False, True], ids=["plain in the worker", "translated in the worker"])
@pytest.mark.parametrize(("text", "code"), [(NPU, ""), (FAULT, "507035")], ids=["memory", "fault"])
def test_from_a_loader_worker(text, code, translating):
    loader = torch.utils.data.DataLoader(Failing(text, translating), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError) as caught:
        next(iter(loader))
    assert caught.value.args[0].startswith("Caught ")
    new = translated(caught.value)
    assert type(new) is type(translated(RuntimeError(text)))
    assert (new.vendor_code, len(new.args)) == (code, 1)
    memory = "CUDA out of memory. Tried to allocate 72.00 MiB. Caught "
    assert str(new).startswith(memory if text is NPU else "Vector core kernel failed (")
    assert text.splitlines()[0] in str(new)


def test_from_a_loader_worker_of_the_users_own():
    class Mine(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            raise RuntimeError("mine: out of memory budget")

    loader = torch.utils.data.DataLoader(Mine(), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError) as caught:
        next(iter(loader))
    assert translated(caught.value) is caught.value


def test_from_the_torchscript_interpreter():
    text = (
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call "
        f'last):\n  File "m.py", line 3, in f\n    return x + 1\n           ~~~~~ <--- HERE\nRuntimeError: {NPU}\n'
    )
    assert carried_text(text) == NPU
    assert type(translated(RuntimeError(text))) is torch.OutOfMemoryError


def test_a_second_failure_while_handling_the_first_is_translated():
    """The retry of an out-of-memory loop runs inside the handler, or right after it; its error has a context."""
    second = RuntimeError(NPU.replace("72.00", "36.00"))
    second.__context__ = translated(RuntimeError(NPU))
    assert type(translated(second)) is torch.OutOfMemoryError


def test_without_torch_every_class_is_a_builtin(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.delitem(sys.modules, "torch.distributed")
    assert type(translated(RuntimeError(NPU))) is RuntimeError
    assert type(translated(RuntimeError(FAULT))) is RuntimeError
