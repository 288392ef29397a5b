"""Every attested error text of the other plugins: Cambricon, Moore Threads, Enflame, Intel and Torch-FL."""

import os

import pytest

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
import torch
import torch.distributed as dist

from flagos_shim._translate import translate
from flagos_shim.vendors import _mlu_errors as mlu
from flagos_shim.vendors import _other_errors as other

OOM, ACC, NOT, COL, RUN = (
    torch.OutOfMemoryError, getattr(torch, "AcceleratorError", RuntimeError), NotImplementedError, dist.DistBackendError,
    RuntimeError,
)  # fmt: skip
DATA = {
    "mlu": (mlu.ERRORS, mlu.ERROR_CODES),
    "musa": (other.MUSA_ERRORS, {}),
    "gcu": (other.GCU_ERRORS, {}),
    "xpu": (other.XPU_ERRORS, {}),
    "flagos": (other.FLAGOS_ERRORS, other.FLAGOS_ERROR_CODES),
}

OUT_OF_MEMORY = [
    ("mlu", "MLU out of memory. Tried to allocate 2.00 GiB. MLU 0 has a total capacity of 23.37 GiB of which 1.02 GiB is "
     "free. Of the allocated memory 20.10 GiB is allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated. "
     "If reserved but unallocated memory is large try setting PYTORCH_MLU_ALLOC_CONF=expandable_segments:True", "2.00 GiB"),
    ("mlu", "MLU out of memory. Tried to allocate more than 1EB memory.", "more than 1EB"),
    ("mlu", "MLU out of memory. Tried to allocate 20.00 MiB (MLU 0; 23.37 GiB total capacity; 22.00 GiB already allocated; "
     "1.00 MiB free; 22.10 GiB reserved in total by PyTorch)", "20.00 MiB"),
    ("mlu", "CNRT out of memory. Tried to allocate 20.00 MiB (MLU 0; 23.37 GiB total capacity)", "20.00 MiB"),
    ("mlu", "CNRT error: out of memory", None),
    ("mlu", "CNRT error: no sufficient memory (API: cnrtMalloc(&p, n))", None),
    ("mlu", "CNNL error: CNNL_STATUS_ALLOC_FAILED", None),
    ("mlu", "CNDRV error: CN_MEMORY_ERROR_OUT_OF_MEMORY", None),
    ("mlu", "CNDRV error: device has no memory to alloc", None),
    ("xpu", "XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 15.91 GiB of which 1.00 GiB is "
     "free. Of the allocated memory 1.00 GiB is allocated by PyTorch", "4.00 GiB"),
    ("xpu", "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", None),
    ("xpu", "Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", None),
    ("musa", "MUSA out of memory. Tried to allocate 896.00 MiB (GPU 0; 47.50 GiB total capacity)", "896.00 MiB"),
    ("musa", "MUSA error: out of memory\nMUSA kernel errors might be asynchronously reported at some other API call.", None),
    ("gcu", "GCU out of memory. Tried to allocate 1.00 GiB. GCU 0 has a total capacity of 42.00 GiB", "1.00 GiB"),
    ("gcu", "GCU out of memory. Tried to allocate more than 1EB memory.", "more than 1EB"),
    ("flagos", "CachingDeviceAllocator: failed to allocate 2097152 bytes on device 0", "2097152 bytes"),
    ("flagos", "CachingDeviceAllocator (delegated): failed to allocate 2097152 bytes on device 0", "2097152 bytes"),
    ("flagos", "FlagOS error: 4 when calling foMalloc(&ptr, size)", None),
]  # fmt: skip

OTHER = [
    ("mlu", "CNRT error: invalid argument.", ACC, "Invalid argument (cnrtErrorArgsInvalid, CNRT error: invalid argument). ",
     "CNRT error: invalid argument", "parameter"),
    ("mlu", "CNRT error: invalid argument. (API: cnrtSetDevice(99))", ACC, "Invalid argument (cnrtErrorArgsInvalid, ",
     "CNRT error: invalid argument", "parameter"),
    ("mlu", "CNRT error: invalid device ordinal", ACC, "Invalid device ordinal (", "CNRT error: invalid device ordinal",
     "parameter"),
    ("mlu", "CNRT error: failed to call the driver-api function.", ACC, "Driver failed (cnrtErrorCndrvFuncCall, ",
     "CNRT error: failed to call the driver-api function", "fatal"),
    ("mlu", "CNRT error: invalid kernel handle", ACC, "Invalid argument (", "CNRT error: invalid kernel handle", "parameter"),
    ("mlu", "CNRT error: feature not supported", NOT, "Operator not supported (", "CNRT error: feature not supported",
     "parameter"),
    ("mlu", "CNRT error: kernel trap", ACC, "Kernel failed (", "CNRT error: kernel trap", "execution"),
    ("mlu", "CNRT error: something new", ACC, "Device runtime error (", "CNRT error: something new", "execution"),
    ("mlu", "CNNL error: CNNL_STATUS_BAD_PARAM", RUN, "Invalid operator argument (CNNL_STATUS_BAD_PARAM). ",
     "CNNL_STATUS_BAD_PARAM", "parameter"),
    ("mlu", "CNNL error: CNNL_STATUS_NOT_SUPPORTED (API: cnnlAdd(h))", NOT, "Operator not supported (",
     "CNNL_STATUS_NOT_SUPPORTED", "parameter"),
    ("mlu", "CNNL error: CNNL_STATUS_EXECUTION_FAILED", ACC, "Kernel failed (", "CNNL_STATUS_EXECUTION_FAILED", "execution"),
    ("mlu", "CNNL error: CNNL_STATUS_NEW", RUN, "Operator library error (", "CNNL_STATUS_NEW", "execution"),
    ("mlu", "CNDEV error: not initialised", ACC, "Device runtime error (", "CNDEV error: not initialised", "execution"),
    ("mlu", "CNDRV error: CN_INVOKE_ERROR_EXECUTED_TIMEOUT", ACC, "Kernel timed out (", "CN_INVOKE_ERROR_EXECUTED_TIMEOUT",
     "execution"),
    ("mlu", "MLUOPS error: MLUOP_STATUS_BAD_PARAM", RUN, "Invalid operator argument (", "MLUOP_STATUS_BAD_PARAM", "parameter"),
    ("mlu", "CNCL error in: torch_mlu/csrc/framework/distributed/process_group_cncl.cpp:99, invalid argument", COL,
     "Collective operation failed. ", "", "execution"),
    ("mlu", "[Rank 3] Watchdog caught collective operation timeout: WorkCNCL(SeqNum=7) ran for 1800123 milliseconds before "
     "timing out.", COL, "Collective timed out. ", "", "execution"),
    ("mlu", "[Rank 3] WorkCNCL(SeqNum=7) timed out in blocking wait (TORCH_CNCL_BLOCKING_WAIT=1).", COL,
     "Collective timed out. ", "", "execution"),
    ("mlu", "Some CNCL operations have failed or timed out. Due to the asynchronous nature of MLU kernels", COL,
     "Collective timed out. ", "", "execution"),
    ("mlu", "Unconvertible CNCL type ComplexHalf", RUN, "Invalid argument of a collective. ", "", "parameter"),
    ("mlu", "CNCL only supports MLU tensors, but got a tensor on cpu", RUN, "Invalid argument of a collective. ", "",
     "parameter"),
    ("mlu", "Invalid device argument 9: did you call init?", ACC, "Invalid device ordinal. ", "", "parameter"),
    ("mlu", "No MLU devices are available", RUN, "No CUDA GPUs are available. ", "", "parameter"),
    ("mlu", "Cannot re-initialize MLU in forked subprocess. To use MLU with multiprocessing, you must use the 'spawn' start "
     "method", RUN, "Cannot re-initialize CUDA in forked subprocess. ", "", "parameter"),
    ("mlu", "The operator 'aten::x' is not currently implemented for the MLU device. Please open an issue", NOT,
     "Operator not supported. ", "", "parameter"),
    ("musa", "MUSA error: an illegal memory access was encountered\nMUSA kernel errors might be", ACC,
     "Device runtime error (MUSA error: an illegal memory access was encountered). ",
     "MUSA error: an illegal memory access was encountered", "execution"),
    ("musa", "MUSA error: invalid device ordinal", ACC, "Invalid device ordinal (", "MUSA error: invalid device ordinal",
     "parameter"),
    ("musa", "Cannot re-initialize MUSA in forked subprocess. To use MUSA", RUN,
     "Cannot re-initialize CUDA in forked subprocess. ", "", "parameter"),
    ("musa", "Could not run 'aten::x' with arguments from the 'musa' backend. This could be because", NOT,
     "Operator not supported. ", "", "parameter"),
    ("gcu", "Could not run 'aten::x' with arguments from the 'PrivateUse1' backend.", NOT, "Operator not supported. ", "",
     "parameter"),
    ("xpu", "Could not run 'aten::x' with arguments from the 'XPU' backend.", NOT, "Operator not supported. ", "", "parameter"),
    ("flagos", "FlagOS error: 3 when calling foSetDevice(9)", ACC, "Invalid device ordinal (3). ", "3", "parameter"),
    ("flagos", "FlagOS error: 77 when calling foX()", ACC, "Device error (77). ", "77", "execution"),
    ("flagos", "Could not run 'aten::x' with arguments from the 'PrivateUse1' backend.", NOT, "Operator not supported. ", "",
     "parameter"),
]  # fmt: skip


@pytest.mark.parametrize(("vendor", "text", "size"), OUT_OF_MEMORY)
@pytest.mark.parametrize("raised", [RuntimeError, OOM], ids=["old plugin", "new plugin"])
def test_out_of_memory(vendor, text, size, raised):
    new = translate(raised(text), vendor, *DATA[vendor])
    assert type(new) is OOM
    stated = size or "an amount the vendor does not state"
    assert new.args == (f"CUDA out of memory. Tried to allocate {stated}. {text}",)
    assert (new.vendor, new.category) == (vendor, "resource")


@pytest.mark.parametrize(("vendor", "text", "kind", "begins", "code", "category"), OTHER)
def test_other_errors(vendor, text, kind, begins, code, category):
    raised = NotImplementedError if kind is NOT else RuntimeError
    new = translate(raised(text), vendor, *DATA[vendor])
    assert type(new) is kind
    assert str(new).startswith(begins)
    assert new.args[0].endswith(text)
    assert (new.vendor, new.vendor_code, new.category) == (vendor, code, category)
    assert new.hint


def test_the_one_exception_class_of_torch_mlu():
    """torch.mlu.CnrtError is a RuntimeError raised by check_error() alone, worded "<text> (<code>)"."""
    cnrt_error = type("CnrtError", (RuntimeError,), {"__module__": "torch_mlu.mlu"})
    new = translate(cnrt_error("invalid argument (100006)"), "mlu", *DATA["mlu"])
    assert isinstance(new, ACC)
    assert new.vendor_code == "100006"
    mine = RuntimeError("invalid argument (100006)")
    assert translate(mine, "mlu", *DATA["mlu"]) is mine
