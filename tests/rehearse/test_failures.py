"""Injected failures come out of torch_npu as its own errors, in its own words."""

from __future__ import annotations

import json

import pytest

from .conftest import Run

OPERATORS = "mm:0@1,_softmax:0@1,add:0@1,convolution:0@1"  # which may fail; at first none does
# Where torch_npu 2.13 notices the failure of each call, and what its own table says of the code.
FIRST_LINE = {
    "aclrtSynchronizeDeviceWithTimeout": "NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is {}",
    "aclrtSynchronizeStreamWithTimeout": "AclrtSynchronizeStreamWithTimeout(stream()), error code is {}",
    "aclrtMallocAlign32": "NPU function error: params.err, error code is {}",
    "aclrtMemcpy": "NPU function error: aclrtMemcpy, error code is {}",
    "aclrtMemcpyAsync": "error code is {}",
    "aclrtSetDevice": "NPU function error: c10_npu::SetDevice(device), error code is {}",
    "aclrtRecordEvent": "NPU function error: aclrtRecordEvent(eventParam_.event, npuStream), error code is {}",
    "mm": "NPU function error: call aclnnMm failed, error code is {}",
    "softmax": "NPU function error: call aclnnSoftmax failed, error code is {}",
    "add.Tensor": "NPU function error: call aclnnAdds failed, error code is {}",
    "convolution": "NPU function error: call aclnnConvolution failed, error code is {}",
}
SENTENCE = {
    "107001": "Invalid device ID.",
    "107002": "The context is empty.",
    "507015": "The aicore execution is abnormal.",
    "507035": "The vector core execution is abnormal.",
    "561103": "EZ9999: Inner Error! The kernel of the operator was not found.",
}


@pytest.mark.parametrize("code", SENTENCE)
def test_a_code_is_raised_by_each_call_that_gives_it(run: Run, code: str) -> None:
    raised = json.loads(run("failures.py", code, FLAGOS_SHIM_REHEARSE_FAIL=OPERATORS).stdout.splitlines()[-1])
    assert raised.pop("afterwards") == 32.0
    assert set(raised) == set(FIRST_LINE)
    for name, (kind, first, text) in raised.items():
        assert kind == "builtins.RuntimeError"
        assert first.endswith(FIRST_LINE[name].format(code)), first
        assert SENTENCE[code] in text, text
        assert "ERR00100 PTA call acl api failed" in text and "(rehearsed failure of " in text


def test_the_runtimes_out_of_memory_is_torchs_own(run: Run) -> None:
    raised = json.loads(run("failures.py", "207001", FLAGOS_SHIM_REHEARSE_FAIL=OPERATORS).stdout.splitlines()[-1])
    assert raised["afterwards"] == 32.0
    assert raised["aclrtMallocAlign32"][0] == "torch.OutOfMemoryError"
    assert raised["aclrtMallocAlign32"][1].startswith("NPU out of memory. Tried to allocate 258.00 MiB (NPU 0; ")
    for name in ("aclrtSynchronizeDeviceWithTimeout", "aclrtMemcpy", "mm", "convolution"):
        assert raised[name][0] == "torch.OutOfMemoryError", raised[name]
        assert "EL0004: Failed to allocate memory." in raised[name][2]


@pytest.mark.parametrize(
    ("entry", "fails"),
    [("@2", [False, True, False, False]), ("@3+", [False, False, True, True]), ("", [True] * 4)],
)
@pytest.mark.parametrize("name", ["aclrtSynchronizeDeviceWithTimeout", "mm"])
def test_a_failure_can_be_that_of_one_call(run: Run, name: str, entry: str, fails: list[bool]) -> None:
    code = """
        import json, sys, torch, torch_npu
        x = torch.eye(2, device="npu")
        seen = []
        for _ in range(4):
            try:
                torch.npu.synchronize() if len(sys.argv[1]) > 2 else x @ x
                seen.append(False)
            except RuntimeError:
                seen.append(True)
        print(json.dumps(seen))
    """
    out = run(code, name, FLAGOS_SHIM_REHEARSE_FAIL=f"{name}:507035{entry}").stdout
    assert json.loads(out.splitlines()[-1]) == fails


def test_every_operator_can_be_made_to_fail(run: Run) -> None:
    done = run(
        "import torch, torch_npu; torch.zeros(2, device='npu')", status=1, FLAGOS_SHIM_REHEARSE_FAIL="aclnn:561103"
    )
    assert "call aclnnInplaceZero failed, error code is 561103" in done.stderr
