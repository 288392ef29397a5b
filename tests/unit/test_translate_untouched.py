"""What is not the device's error keeps its class and its words: it comes back as the very same object."""

import os

import pytest

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flagos_shim._translate import normalise_out_of_memory, translate
from flagos_shim.vendors import _ascend_errors as ascend
from flagos_shim.vendors import _mlu_errors as mlu
from flagos_shim.vendors import _other_errors as other

VENDORS = {
    "ascend": (ascend.ERRORS, ascend.ERROR_CODES),
    "mlu": (mlu.ERRORS, mlu.ERROR_CODES),
    "musa": (other.MUSA_ERRORS, {}),
    "gcu": (other.GCU_ERRORS, {}),
    "xpu": (other.XPU_ERRORS, {}),
    "flagos": (other.FLAGOS_ERRORS, other.FLAGOS_ERROR_CODES),
}
SIGNED = "\n[ERROR] 2025-04-29-18:46:11 (PID:1066, Device:1, RankID:-1) ERR00003 PTA invalid value"


class MineError(RuntimeError):
    pass


def caught(inner, outer):
    """``outer`` raised while ``inner`` was handled, as a user's own wrapper is."""
    try:
        try:
            raise inner
        except RuntimeError as error:
            raise outer from error
    except RuntimeError as error:
        return error


NPU = "NPU out of memory. Tried to allocate 72.00 MiB (NPU 0; 61.27 GiB total capacity)"
UNTOUCHED = [
    # the user's own
    ValueError("mine: out of memory budget"),
    RuntimeError("mine: out of memory budget"),
    RuntimeError("out of memory budget of 3 GiB"),
    RuntimeError("my NPU out of memory. Tried to allocate handler is not written yet"),
    RuntimeError("the NPU ran out of memory"),
    RuntimeError("error code is 507035"),
    RuntimeError("EL0004"),
    RuntimeError("E10001: validation of the form failed"),
    RuntimeError("FORCE STOP requested by the scheduler"),
    RuntimeError("Failed to allocate a port"),
    RuntimeError("operator not supported"),
    RuntimeError("timed out in blocking wait"),
    RuntimeError("HCCL is what I want\n"),
    RuntimeError("invalid argument"),
    RuntimeError("invalid argument (1)"),
    MineError(NPU),
    caught(RuntimeError(NPU), RuntimeError(f"Caught by me: {NPU}")),
    caught(RuntimeError(NPU), RuntimeError(f"{NPU} - giving up after 3 tries")),
    RuntimeError(),
    RuntimeError("NPU out of memory. Tried to allocate", 72),
    RuntimeError(12),
    torch.OutOfMemoryError("mine: out of memory budget"),
    KeyboardInterrupt(),
    SystemExit(1),
    MemoryError("NPU out of memory. Tried to allocate 72.00 MiB"),
    UserWarning("CAUTION: The operator 'aten::x' is not currently supported on the NPU backend and will fall back to run on "
                "the CPU. This may have performance implications."),
    # torch's own
    RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    RuntimeError("The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 2"),
    RuntimeError("Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu!"),
    RuntimeError("shape '[4]' is invalid for input of size 6"),
    RuntimeError("Expected one of cpu, cuda, ipu, xpu, privateuseone device type at start of device string: nonsense"),
    IndexError("Dimension out of range (expected to be in range of [-2, 1], but got 9)"),
    IndexError("index 7 is out of bounds for dimension 0 with size 3"),
    NotImplementedError('"linalg_eig_out_cpu" not implemented for \'Half\''),
    RuntimeError('"addmm_impl_cpu_" not implemented for \'Half\''),
    NotImplementedError("Could not run 'aten::x' with arguments from the 'SparseCPU' backend."),
    RuntimeError("Failed to load the backend extension: torch_npu. You can disable extension auto-loading with "
                 "TORCH_DEVICE_BACKEND_AUTOLOAD=0."),
    RuntimeError("torch.register_privateuse1_backend() has already been set! Current backend: npu"),
    AssertionError("Torch not compiled with CUDA enabled"),
    AssertionError("Invalid device id" + SIGNED),
    ImportError("libhccl.so: cannot open shared object file: No such file or directory"),
    ImportError("/x/libtorch_npu.so: undefined symbol: _ZN3c10"),
    Exception("ASCEND_HOME_PATH : /x does not exist. Please run 'source set_env.sh'." + SIGNED),
    NameError("name 'DeferredNpuCallError' is not defined"),
    # the host's memory
    RuntimeError("Malloc pin memory failed, host out of memory, Rried to allocate size: 4096"),
    RuntimeError("CachingHost:../torch_npu/csrc/core/npu/CachingHostAllocator.cpp:9 NPU function error: "
                 "aclrtMallocHost(&ptr, size), error code is 207001" + SIGNED),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
                 "allocate 1152921504606846976 bytes. Error code 12 (Cannot allocate memory)"),
    RuntimeError("CNRT error: insufficient host memory"),
]  # fmt: skip


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("exc", UNTOUCHED, ids=lambda exc: f"{type(exc).__name__}: {exc}"[:60])
def test_comes_back_as_it_is(vendor, exc):
    before = (exc.args, dict(exc.__dict__), exc.__cause__, exc.__traceback__)
    assert translate(exc, vendor, *VENDORS[vendor]) is exc
    assert (exc.args, exc.__dict__, exc.__cause__, exc.__traceback__) == before


@pytest.mark.parametrize("text", [
    "mine: out of memory budget",
    "CUDA out of memory. Tried to allocate 72.00 MiB. GPU 0 has a total capacity of 1 GiB",
    "Malloc pin memory failed, host out of memory, Rried to allocate size: 4096",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
    "",
])  # fmt: skip
def test_normalising_leaves_other_texts_alone(text):
    assert normalise_out_of_memory(text) == text


VENDOR_WORDS = st.sampled_from([
    "NPU out of memory. Tried to allocate ", "72.00 MiB", " NPU function error: ", ", error code is ", "507035", "207001",
    "EL0004", "EZ9999: ", "\n", " (", ")", "Caught RuntimeError in DataLoader worker process 0.\n",
    "Original Traceback (most recent call last):\n", "RuntimeError: ", "CNRT error: ", "CNNL error: CNNL_STATUS_",
    "HCCL function error: ", "The Inner error is reported as above. The process exits for this inner error", "FORCE STOP",
    "CUDA out of memory. Tried to allocate ", "[ERROR] 1-1 (PID:1, Device:0, RankID:-1) ERR00100 PTA ", "\ud800", "\x00",
])  # fmt: skip
TEXTS = st.lists(st.one_of(VENDOR_WORDS, st.text(max_size=20)), max_size=8).map("".join)


@settings(max_examples=400, deadline=None, database=None)
@given(
    text=TEXTS, kind=st.sampled_from([RuntimeError, NotImplementedError, torch.OutOfMemoryError, ValueError, MineError])
)
def test_never_raises_and_keeps_every_word(text, kind):
    for name, data in VENDORS.items():
        exc = kind(text)
        new = translate(exc, name, *data)
        assert isinstance(new, BaseException)
        if new is not exc:
            assert isinstance(new, RuntimeError)
            assert len(new.args) == 1 and new.args[0].endswith(text)
            assert new.__cause__ is exc
            assert new.category in ("resource", "parameter", "execution", "fatal")
            assert translate(new, name, *data) is new
    once = normalise_out_of_memory(text)
    assert normalise_out_of_memory(once) == once


@settings(database=None)
@given(args=st.lists(st.one_of(st.none(), st.integers(), st.text(), st.binary()), max_size=3))
def test_any_arguments(args):
    exc = RuntimeError(*args)
    assert isinstance(translate(exc, "ascend", *VENDORS["ascend"]), RuntimeError)
