"""Makes calls fail, one at a time, and prints what each raises as JSON: name -> [class, first line, whole text]."""

import json
import os
import sys

import torch
import torch_npu  # noqa: F401

x, event = torch.ones(4, 4, device="npu"), torch.npu.Event(enable_timing=True)
pinned = torch.ones(4).pin_memory()
CALLS = {
    "aclrtSynchronizeDeviceWithTimeout": torch.npu.synchronize,
    "aclrtSynchronizeStreamWithTimeout": lambda: torch.npu.current_stream().synchronize(),
    "aclrtMallocAlign32": lambda: torch.empty(64 << 20, device="npu"),
    "aclrtMemcpy": lambda: x.cpu(),
    "aclrtMemcpyAsync": lambda: pinned.to("npu", non_blocking=True),
    "aclrtSetDevice": lambda: torch.npu.set_device(1),
    "aclrtRecordEvent": lambda: event.record(),
    "mm": lambda: x @ x,
    "softmax": lambda: torch.softmax(x, 0),
    "add.Tensor": lambda: x + 1,
    "convolution": lambda: torch.nn.functional.conv2d(x[None, None], x[None, None, :3, :3]),
}
raised = {}
for name, call in CALLS.items():
    os.environ["FLAGOS_SHIM_REHEARSE_FAIL"] = f"{name.replace('softmax', '_softmax')}:{sys.argv[1]}"
    try:
        call()
    except Exception as error:
        raised[name] = [f"{type(error).__module__}.{type(error).__name__}", str(error).splitlines()[0], str(error)]
    os.environ["FLAGOS_SHIM_REHEARSE_FAIL"] = ""
    torch.npu.set_device(0)
raised["afterwards"] = (x + x).sum().item()
print(json.dumps(raised))
