"""A translated text that is met again (copied, sent from a worker, raised anew) is not translated a second time."""

import os

import pytest

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
import torch

from flagos_shim._translate import translate
from flagos_shim.vendors import _ascend_errors as ascend
from flagos_shim.vendors import _mlu_errors as mlu

TRAILER = "\n[ERROR] 2025-04-29-18:46:11 (PID:1066, Device:1, RankID:-1) {}"
CALL = "f:compiler_depend.ts:513 {} function error: {}, error code is {}" + TRAILER
TEXTS = {
    "kernel": ("ascend", CALL.format("NPU", "aclrtSynchronizeStream", 507035, "ERR00100 PTA call acl api failed")),
    "parameter": ("ascend", "f:x:1 NPU function error: foo, error code is 100000"),
    "operator": ("ascend", CALL.format("OPS", "aclnnExp", 561103, "ERR01100 OPS call acl api failed")),
    "memory": ("ascend", CALL.format("NPU", "aclrtMalloc", 207001, "ERR00100 PTA call acl api failed")),
    "allocator": ("ascend", "NPU out of memory. Tried to allocate 72.00 MiB (NPU 0; 1.00 GiB total capacity)"),
    "collective": ("ascend", CALL.format("HCCL", "HcclAllReduce", 9, "ERR02200 DIST call hccl api failed.")),
    "sparse": (
        "ascend",
        "CAUTION: The operator 'aten::addmm' is not currently supported on the NPU backend."
        + TRAILER.format("ERR01007 OPS feature not supported"),
    ),
    "signed": ("ascend", "Tensor should be on NPU" + TRAILER.format("ERR01001 OPS invalid parameter")),
    "driver": ("mlu", "CNRT error: failed to call the driver-api function. (API: cnrtQueueSync(queue))"),
    "name": ("mlu", "CNNL error: CNNL_STATUS_BAD_PARAM"),
    "unsupported": ("mlu", "The operator 'aten::x' is not currently implemented for the MLU device. Set the variable."),
}
TABLES = {"ascend": (ascend.ERRORS, ascend.ERROR_CODES), "mlu": (mlu.ERRORS, mlu.ERROR_CODES)}


def again(exc, vendor):
    return translate(exc, vendor, *TABLES[vendor])


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("anew", [lambda e: type(e)(*e.args), lambda e: RuntimeError(str(e))], ids=["class", "plain"])
def test_raised_anew(name, anew):
    vendor, text = TEXTS[name]
    once = again(RuntimeError(text), vendor)
    assert once.args[0].endswith(text) and once.args[0] != text
    twice = again(anew(once), vendor)
    assert (type(twice), twice.args, twice.__dict__) == (type(once), once.args, once.__dict__)
    assert repr(twice.__cause__) == repr(once.__cause__)


@pytest.mark.parametrize("name", TEXTS)
def test_brought_by_a_worker_and_then_raised_anew(name):
    vendor, text = TEXTS[name]
    once = again(RuntimeError(text), vendor)
    kind = type(once)
    carried = f"Caught {kind.__name__} in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
    carried += f'  File "x.py", line 1, in f\n    g()\n{kind.__module__}.{kind.__name__}: {once.args[0]}\n'
    brought = again(kind(carried), vendor)
    assert type(brought) is kind and brought.args[0].endswith(carried) and brought.vendor_code == once.vendor_code
    assert brought.args[0].count("Caught") == 1 and brought.category == once.category
    twice = again(kind(*brought.args), vendor)
    assert (twice.args, twice.__dict__) == (brought.args, brought.__dict__)


def test_an_operator_missing_for_a_sparse_tensor_is_a_missing_operator():
    error = again(RuntimeError(TEXTS["sparse"][1]), "ascend")
    assert type(error) is NotImplementedError and error.vendor_code == "ERR01007"
    assert str(error).startswith("Operator not supported (ERR01007). CAUTION: ") and "npu-smi" not in error.hint


def test_an_error_that_the_interpreter_brought_out_of_python():
    """TorchScript names the class twice where its operator is written in Python, as pybind words it."""
    inner = again(RuntimeError(TEXTS["allocator"][1]), "ascend")
    text = (
        "The following operation failed in the TorchScript interpreter.\n"
        "Traceback of TorchScript (most recent call last):\n"
        '  File "x.py", line 3, in f\n    return x + x\n           ~~~~~ <--- HERE\n'
        f"RuntimeError: OutOfMemoryError: {inner.args[0]}\n__notes__ (len=1):\nHint: {inner.hint}\n\nAt:\n  y.py(81): g\n"
    )
    error = again(RuntimeError(text), "ascend")
    assert type(error) is torch.OutOfMemoryError and error.args[0].endswith(text)
    assert str(error).startswith("CUDA out of memory. Tried to allocate 72.00 MiB. The following operation")


@pytest.mark.parametrize(
    "text",
    [
        "Loading failed. CUDA out of memory. Tried to allocate 1.00 GiB. NPU out of memory. Tried to allocate 1.00 GiB",
        "Invalid argument (mine, 7). " + TEXTS["parameter"][1],
        "Step 3 failed. NPU out of memory. Tried to allocate 1.00 GiB (NPU 0; 1.00 GiB total capacity)",
    ],
)
def test_another_sentence_in_front_is_somebody_elses(text):
    mine = RuntimeError(text)
    assert again(mine, "ascend") is mine


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CUDA error: invalid device ordinal\nDevice 99 was asked for, there are 2.", "AcceleratorError"),
        (
            "Attempting to deserialize object on CUDA device 7 but torch.cuda.device_count() is 2. Please",
            "RuntimeError",
        ),
        ("No CUDA GPUs are available", "RuntimeError"),
    ],
)
def test_what_is_in_torchs_words_already_keeps_them(text, kind):
    error = translate(RuntimeError(text), "acme", (), {})
    assert error.args == (text,) and error.__cause__ is None
    assert type(error) is getattr(torch, kind, RuntimeError)
    assert (error.vendor, error.vendor_code, error.category) == ("acme", "", "parameter") and error.hint
