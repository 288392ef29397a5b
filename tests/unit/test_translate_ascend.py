"""Every attested error text of torch_npu and CANN becomes torch's class, with the code, and keeps its own words."""

import os

import pytest

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
import torch
import torch.distributed as dist

from flagos_shim._translate import translate
from flagos_shim.vendors._ascend_errors import ERROR_CODES, ERRORS

OOM, ACC, NOT, COL, RUN = (
    torch.OutOfMemoryError, getattr(torch, "AcceleratorError", RuntimeError), NotImplementedError, dist.DistBackendError,
    RuntimeError,
)  # fmt: skip


def trailer(code, words, rank=-1):
    return f"\n[ERROR] 2025-04-29-18:46:11 (PID:1066, Device:1, RankID:{rank}) {code} {words}"


ACL = trailer("ERR00100", "PTA call acl api failed")
OPS = trailer("ERR01100", "OPS call acl api failed")
DIST = trailer("ERR02200", "DIST call hccl api failed.", 3)
PLACE = "build/CMakeFiles/torch_npu.dir/compiler_depend.ts"
INNER = "\nEZ9999: Inner Error!\nEZ9999: [PID: 1066] 2025-04-29-18:46:11.123.456 detail[FUNC:F][FILE:f.cc][LINE:9]\n"
INNER += "        TraceBack (most recent call last):\n"
QUEUE = (
    "The Inner error is reported as above. The process exits for this inner error, and the current working operator "
    "name is {}.\nSince the operator is called asynchronously, the stacktrace may be inaccurate. If you want to get the "
    "accurate stacktrace, please set the environment variable ASCEND_LAUNCH_BLOCKING=1.\nNote: ASCEND_LAUNCH_BLOCKING=1 "
    "will force ops to run in synchronous mode, resulting in performance degradation. Please unset "
    "ASCEND_LAUNCH_BLOCKING in time after debugging." + ACL
)


def call(number, name="c10_npu::acl::AclrtSynchronizeStreamWithTimeout(stream)", kind="NPU", end=ACL):
    return f"npuSynchronizeDevice:{PLACE}:513 {kind} function error: {name}, error code is {number}{end}"


POOL = (
    "(NPU 0; 61.27 GiB total capacity; 56.05 GiB already allocated; 56.05 GiB current active; 5.04 MiB free; "
    "58.39 GiB reserved in total by PyTorch"
)
OUT_OF_MEMORY = {
    "new": (f"NPU out of memory. Tried to allocate 72.00 MiB {POOL}).If reserved memory is >> allocated memory try "
            "setting max_split_size_mb to avoid fragmentation.", "72.00 MiB"),
    "old": (f"NPU out of memory. Tried to allocate 72.00 MiB {POOL}) If reserved memory is >> allocated memory try "
            "setting max_split_size_mb to avoid fragmentation.", "72.00 MiB"),
    "allowed": ("NPU out of memory. Tried to allocate 512 bytes (NPU 0; 5.04 MiB free; 2.00 GiB allowed; 58.39 GiB "
                "reserved in total by PyTorch).", "512 bytes"),
    "exabyte": ("NPU out of memory. Tried to allocate more than 1EB memory.", "more than 1EB"),
    "fraction": ("NPU out of memory. Allocation was preemptively rejected because it would exceed "
                 "per_process_memory_fraction limit. Requested size: 3.00 GiB", "3.00 GiB"),
    "workspace": ("NPU out of memory. NPUWorkspaceAllocator tried to allocate 1.00 GiB(NPU 0; 60.96 GiB total capacity; "
                  "86.81 MiB free). If you want to reduce memory usage, take a try to set the environment variable "
                  "TASK_QUEUE_ENABLE=1." + trailer("ERR00006", "PTA memory error"), "1.00 GiB"),
    "device id": ("NPU out of memory. device id: 0", None),
    "EL0004": (call(507899, "aclrtMemcpy") + "\n[Error]: An internal error occurs in the Driver module.\nEL0004: [PID: 9] "
               "2025-08-26-03:58:55.257.127 Failed to allocate memory.\n        Possible Cause: Available memory is "
               "insufficient.\n        alloc device memory failed, runtime result = 207001[FUNC:R][FILE:l.cpp]", None),
    "Failed to allocate": (call(500000) + "\nFailed to allocate 2097152 bytes", "2097152 bytes"),
    "queue": (QUEUE.format("SelfAttentionOperation") + "\n[PID: 10652] 2025-12-03-12:16:41.842.173 "
              "Memory_Allocation_Failure(EL0004): Failed to allocate memory.", None),
    "compact": ("[PID: 10652] 2025-12-03-12:16:41.842.173 Memory_Allocation_Failure(EL0004): Failed to allocate memory "
                "requested by APP module.", None),
    "HCCL": ("InnerRunOpApi:../torch_npu/csrc/framework/OpParamMaker.cpp:287 OPS function error: HcclAllreduce, error "
             f"code is 24{OPS}\nMemory_Allocation_Failure(EL0004): Failed to allocate memory requested by HCCL module.",
             None),
    "HCCL 24": (f"f:{PLACE}:1 HCCL function error: HcclAllReduce(a), error code is 24{DIST}", None),
    "EI0007": (f"f:{PLACE}:1 HCCL function error: HcclCommInit, error code is 7{DIST}\nEI0007: Failed to allocate resource "
               "Notify with info x. Reason: Resources are exhausted.", None),
    "EI0011": (f"f:{PLACE}:1 HCCL function error: HcclCommInit, error code is 7{DIST}\n"
               "Resource_Error_Insufficient_Device_Memory(EI0011): Failed to allocate 209715200 bytes of NPU memory.",
               "209715200 bytes"),
    "200000": (call(200000), None),
    "207001": (call(207001), None),
    "207005": (call(207005), None),
    "207018": (call(207018), None),
    "300000": (call(300000), None),
}  # fmt: skip


@pytest.mark.parametrize("name", OUT_OF_MEMORY)
@pytest.mark.parametrize("raised", [RuntimeError, OOM], ids=["old plugin", "new plugin"])
def test_out_of_memory(name, raised):
    text, size = OUT_OF_MEMORY[name]
    new = translate(raised(text), "ascend", ERRORS, ERROR_CODES)
    assert type(new) is OOM
    stated = size or "an amount the vendor does not state"
    assert new.args == (f"CUDA out of memory. Tried to allocate {stated}. {text}",)
    assert new.category == "resource"


# name: text, class, what it begins with, code, category
OTHER = {
    "107001": (call(107001, "c10_npu::SetDevice(device)") + "\n[Error]: Invalid device ID.\n        Check whether\n"
               "EE1001: The argument is invalid. Reason: device 99 is not in [0, 2)",
               ACC, "Invalid device ordinal (ACL_ERROR_RT_INVALID_DEVICEID, 107001)", "107001", "parameter"),
    "200002": (call(200002), ACC, "Invalid device ordinal (ACL_ERROR_INVALID_DEVICE, 200002)", "200002", "parameter"),
    "107002": (call(107002), ACC, "No device context in this thread (ACL_ERROR_RT_CONTEXT_NULL, 107002)", "107002",
               "parameter"),
    "100000": (call(100000), RUN, "Invalid argument (ACL_ERROR_INVALID_PARAM, 100000)", "100000", "parameter"),
    "107000": (call(107000), RUN, "Invalid argument (ACL_ERROR_RT_PARAM_INVALID, 107000)", "107000", "parameter"),
    "100001": (call(100001), ACC, "Device runtime not initialised (", "100001", "parameter"),
    "100024": (call(100024), NOT, "Operator not supported (ACL_ERROR_OP_NOT_FOUND, 100024)", "100024", "parameter"),
    "100025": (call(100025), NOT, "Operator cannot be loaded (", "100025", "parameter"),
    "100026": (call(100026), NOT, "Data type not supported (", "100026", "parameter"),
    "100039": (call(100039), RUN, "Stub library loaded", "100039", "parameter"),
    "148049": (call(148049), RUN, "ASCEND_OPP_PATH missing", "148049", "parameter"),
    "107003": (call(107003), ACC, "Stream not in the current context (", "107003", "parameter"),
    "107017": (call(107017), ACC, "Invalid resource handle (", "107017", "parameter"),
    "107018": (call(107018), RUN, "Invalid allocation type (", "107018", "parameter"),
    "107019": (call(107019), ACC, "Device task timed out (", "107019", "execution"),
    "107020": (call(107020), ACC, "Device synchronisation timed out (", "107020", "execution"),
    "200001": (call(200001), NOT, "Function not supported (", "200001", "parameter"),
    "200006": (call(200006), NOT, "Feature not supported (", "200006", "parameter"),
    "207000": (call(207000), NOT, "Feature not supported (", "207000", "parameter"),
    "207003": (call(207003), ACC, "Overflow on the AI Core (", "207003", "execution"),
    "207004": (call(207004), ACC, "Device not available (", "207004", "fatal"),
    "507033": (call(507033), ACC, "Device could not be started (", "507033", "fatal"),
    "207006": (call(207006), ACC, "No permission for the device (", "207006", "parameter"),
    **{str(n): (call(n), ACC, "Out of ", str(n), "resource") for n in range(207007, 207012)},
    "500002": (call(500002, kind="OPS", end=OPS), RUN, "Graph engine inner error (", "500002", "execution"),
    "507001": (call(507001), ACC, "Device task scheduler failed (", "507001", "fatal"),
    "507010": (call(507010), ACC, "Device lost its heartbeat (", "507010", "fatal"),
    "507011": (call(507011), ACC, "Graph execution failed (", "507011", "execution"),
    "507013": (call(507013), ACC, "DMA hardware error (", "507013", "fatal"),
    **{str(n): (call(n), ACC, "", str(n), "execution") for n in (507014, 507017, 507034, 507048, 507046, 507047)},
    **{str(n): (call(n) + INNER, ACC, "", str(n), "execution")
       for n in (507015, 507016, 507035, 507036, 507049, 507050, 507018, 507042, 507043, 507044, 507045)},
    **{str(n): (call(n), ACC, "", str(n), "fatal") for n in (507899, 507900, 507901)},
    "561103": (f"arange_out_op_api:{PLACE}:36 NPU function error: call aclnnArange failed, error code is 561103{ACL}.\n"
               "EZ9999: Inner Error!\nEZ9999: [PID: 5625] 2025-09-19-14:34:08.166.059 Parse dynamic kernel config fail.\n",
               NOT, "Operator kernel not available (ACLNN_ERR_INNER_NULLPTR, 561103)", "561103", "parameter"),
    "161002": (f"add:{PLACE}:36 NPU function error: call aclnnAdd failed, error code is 161002{ACL}", RUN,
               "Invalid operator argument (ACLNN_ERR_PARAM_INVALID, 161002)", "161002", "parameter"),
    "161001": (f"add:{PLACE}:36 NPU function error: call aclnnAdd failed, error code is 161001{ACL}", RUN,
               "Operator argument missing (", "161001", "parameter"),
    "561000": (f"add:{PLACE}:36 NPU function error: call aclnnAdd failed, error code is 561000{ACL}", RUN,
               "Operator inner error (ACLNN_ERR_INNER, 561000)", "561000", "execution"),
    "data type": (f"add:{PLACE}:36 NPU function error: call aclnnAdd failed, error code is 161002{ACL}\nEZ1001: self not "
                  "implemented for DT_COMPLEX64, should be in dtype support list [DT_FLOAT].", NOT,
                  "Operator not supported (ACLNN_ERR_PARAM_INVALID, 161002)", "161002", "parameter"),
    "detail": ("call aclnnAdd failed, detail:EZ1001: 2024-01-01 the size of tensor self must match." + OPS, RUN,
               "Invalid operator argument (EZ1001)", "EZ1001", "parameter"),
    "symbol": ("aclnnLightningIndexer or aclnnLightningIndexerGetWorkspaceSize not in libopapi.so, or libopapi.so not "
               "found." + trailer("ERR01004", "OPS invalid pointer"), NOT, "Operator not supported (ERR01004)", "ERR01004",
               "parameter"),
    "EZ3002 wins over 500002": (call(500002, "SoftmaxV2", "OPS", OPS) + "\nEZ3002: Optype [SoftmaxV2] of Ops kernel is "
                                "unsupported.", NOT, "Operator not supported (EZ3002)", "EZ3002", "parameter"),
    "unknown number": (call(599999) + INNER, ACC, "Device error (599999)", "599999", "execution"),
    "unknown runtime number": (call(507499), ACC, "Device runtime error (507499)", "507499", "execution"),
    "compact call": (" NPU function error: AclrtSynchronizeDevice, error code is 507015 The aicore execution is abnormal.\n",
                     ACC, "AI Core kernel failed (", "507015", "execution"),
    "compact CANN": ("CANN error: CANN Inner Error. Please rectify the fault based on the error information in the ascend "
                     "log.", ACC, "Device error. CANN error", "", "execution"),
    "raw E line": ("EE1001: The argument is invalid. Reason: shape", RUN, "Invalid argument (EE1001)", "EE1001",
                   "parameter"),
    "raw E brackets": ("[PID: 7] 2025-12-03-12:16:41.842.173 Invalid_Argument(EE1001): The argument is invalid.", RUN,
                       "Invalid argument (EE1001)", "EE1001", "parameter"),
    "raw inner": ("EZ9999: Inner Error!\nEZ9999: [PID: 1066] x", ACC, "Operator layer inner error (EZ9999)", "EZ9999",
                  "execution"),
    "raw old E": ("E30006: [PID: 5] check of the operator package failed.\n        Solution: reinstall", RUN,
                  "Operator package check failed (E30006)", "E30006", "parameter"),
    "raw ordinal": ("EE1001: The argument is invalid. Reason: device 99 is not in [0, 2)", ACC,
                    "Invalid device ordinal (EE1001)", "EE1001", "parameter"),
    "EE1002": (call(599998) + "\nEE1002: Stream synchronize timeout.", ACC,
               "Stream synchronisation timed out (EE1002)", "EE1002", "execution"),
    "old stream": ("ACL stream synchronize failed, error code:507018", ACC, "AI CPU kernel failed (", "507018", "execution"),
    "queue": (QUEUE.format("aclnnNonzeroV2"), ACC, "Device call failed (ERR00100)", "ERR00100", "execution"),
    "queue with number": (QUEUE.format("aclnnGather") + "\nKernel Run failed\nlaunch failed, error code is 507018", ACC,
                          "AI CPU kernel failed (ACL_ERROR_RT_AICPU_EXCEPTION, 507018)", "507018", "execution"),
    "queue with operator": (QUEUE.format("Identity") + "\nEZ3002: [PID: 603] 2025-06-23-10:51:59.636.525 Optype [TransData] "
                            "of Ops kernel [AIcoreEngine] is unsupported.", NOT, "Operator not supported (EZ3002)",
                            "EZ3002", "parameter"),
    "queue with collective": (QUEUE.format("HcclAllGather"), COL, "Collective operation failed (ERR00100)", "ERR00100", "execution"),
    "forbidden fallback": ("The operator 'aten::igamma.out' would execute its main computation on CPU through dispatcher "
                           "backend fallback because no kernel is registered for the NPU PrivateUse1 backend, but CPU "
                           "fallback is disabled by TORCH_NPU_FALLBACK_CPU_DISABLE=1."
                           + trailer("ERR01007", "OPS feature not supported"), NOT, "Operator not supported (ERR01007)",
                           "ERR01007", "parameter"),
    "sparse": ("The operator 'aten::x' is not currently supported on the NPU backend."
               + trailer("ERR01007", "OPS feature not supported"), NOT, "Operator not supported (ERR01007)", "ERR01007",
               "parameter"),
    "stream ordinal": ("device_index >= 0 && device_index < num_npus INTERNAL ASSERT FAILED at "
                       '"../torch_npu/csrc/core/npu/NPUStream.cpp":300, please report a bug to PyTorch. Invalid '
                       "device_index : 9, valid device_index range is [0, 8)" + trailer("ERR00003", "PTA invalid value"),
                       ACC, "Invalid device ordinal (ERR00003)", "ERR00003", "parameter"),
    "stream ordinal, bare": ("Invalid device_index : 9, valid device_index range is [0, 8)", ACC,
                             "Invalid device ordinal. Invalid device_index", "", "parameter"),
    "allocator ordinal": ("Invalid device argument 9: did you call init?" + trailer("ERR00001", "PTA invalid parameter"),
                          ACC, "Invalid device ordinal (ERR00001)", "ERR00001", "parameter"),
    "negative ordinal": ("device id must be positive!" + trailer("ERR00003", "PTA invalid value"), ACC,
                         "Invalid device ordinal (ERR00003)", "ERR00003", "parameter"),
    "no device": ("No NPUs are available" + trailer("ERR00009", "PTA resource unavailable"), RUN,
                  "No CUDA GPUs are available (ERR00009)", "ERR00009", "parameter"),
    "fork": ("Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' start "
             "method", RUN, "Cannot re-initialize CUDA in forked subprocess. ", "", "parameter"),
    "two accelerators": ("Two accelerators cannot be used at the same time in PyTorch: npu and cuda. You can install the "
                         "cpu version of PyTorch to use your npu device." + trailer("ERR00007", "PTA feature not supported"),
                         RUN, "Feature not supported (ERR00007)", "ERR00007", "parameter"),
    "signed": ("Expected 2D tensor" + trailer("ERR01002", "OPS invalid type"), RUN, "Invalid type (ERR01002)", "ERR01002",
               "parameter"),
    "HCCL call": (f"HcclAllReduce:{PLACE}:88 HCCL function error: HcclAllReduce(x), error code is 6{DIST}\nEI0006: [PID: 9] "
                  "2025-07-01-00:40:04.135.732 Getting socket times out. Reason: Remote Rank did not send the data in time.",
                  COL, "Connection between ranks timed out (EI0006)", "EI0006", "execution"),
    "HCCL op": (f"InnerRunOpApi:torch_npu/csrc/framework/OpParamMaker.cpp:281 OPS function error: HcclAllgather, error code "
                f"is 6{OPS}.", COL, "Collective resource not found (HCCL_E_NOT_FOUND, 6)", "6", "execution"),
    "HCCL 9": (f"f:{PLACE}:1 HCCL function error: HcclBroadcast, error code is 9{DIST}", COL,
               "Collective timed out (HCCL_E_TIMEOUT, 9)", "9", "execution"),
    "HCCL old": ("[ERROR] HCCL error in: ../torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64", COL,
                 "Collective operation failed. ", "", "execution"),
    "EI0002": (call(507048) + "\nEI0002: [PID: 4] 2025-07-01-00:40:04.135.732 A timeout occurs when the Notify register "
               "waits for execution.", COL, "Collective timed out waiting for a rank (EI0002)", "EI0002", "execution"),
    "EI0005": ("Invalid_Argument(EI0005): The arguments for collective communication are inconsistent between ranks", COL,
               "Ranks disagree on a collective (EI0005)", "EI0005", "parameter"),
    "EJ0001": (call(107020) + "\nEJ0001: Failed to initialize the HCCP process. Reason: the last training process is "
               "running.", COL, "Device still used by an earlier run (EJ0001)", "EJ0001", "resource"),
    "unknown EI": (f"f:{PLACE}:1 HCCL function error: HcclCommInit, error code is 4{DIST}\nEI0099: what", COL,
                   "Collective operation failed (EI0099)", "EI0099", "execution"),
    "watchdog": ("[Rank 3] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=7, OpType=ALLREDUCE, "
                 "Timeout(ms)=1800000) ran for 1800123 milliseconds before timing out.", COL, "Collective timed out. [Rank 3]",
                 "", "execution"),
    "blocking wait": ("[Rank 3] Watchdog: WorkHCCL(SeqNum=7) timed out in blocking wait (TORCH_HCCL_BLOCKING_WAIT=1 or "
                      "HCCL_BLOCKING_WAIT=1).", COL, "Collective timed out. ", "", "execution"),
    "teardown": ("Some HCCL operations have failed or timed out. Due to the asynchronous nature of ASCEND kernels, "
                 "subsequent NPU operations might run on corrupted/incomplete data.", COL, "Collective timed out. ", "",
                 "execution"),
    "HCCL type": ("HCCL all reduce: Unsupported data type Half" + trailer("ERR02007", "DIST feature not supported"), RUN,
                  "Data type not supported by collectives (ERR02007)", "ERR02007", "parameter"),
    "missing backend kernel": ("Could not run 'aten::x' with arguments from the 'PrivateUse1' backend. This could be because",
                               NOT, "Operator not supported. Could not run", "", "parameter"),
}  # fmt: skip

FATAL = {
    "FORCE STOP": 107022, "UCE ERROR": 507053, "HBM MULTI BIT ECC ERROR.": 507054, "SUSPECT MEM ERROR": 507055,
    "HCCS LINK ERROR": 507056, "UB LINK ERROR": 507056, "HCCL OP RETRY FAILED": 507904, "SUSPECT REMOTE ERROR": 507057,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER)
def test_other_errors(name):
    text, kind, begins, code, category = OTHER[name]
    new = translate(RuntimeError(text), "ascend", ERRORS, ERROR_CODES)
    assert type(new) is kind
    assert len(new.args) == 1
    assert str(new).startswith(begins)
    assert str(new).endswith(text)
    assert (new.vendor, new.vendor_code, new.category) == ("ascend", code, category)
    assert new.hint


@pytest.mark.parametrize("words", FATAL)
@pytest.mark.parametrize("shape", ["called", "compact", "bare", "signed"])
def test_hardware_faults(words, shape):
    text = {
        "called": call(FATAL[words], words),
        "compact": f" NPU function error: {words}, error code is {FATAL[words]} ",
        "bare": words,
        "signed": words + ACL,
    }[shape]
    new = translate(RuntimeError(text), "ascend", ERRORS, ERROR_CODES)
    assert isinstance(new, COL if words.startswith("HCCL") else ACC)
    assert new.category == "fatal"
    assert new.vendor_code == (str(FATAL[words]) if shape in ("called", "compact") else words.rstrip("."))


def test_an_asynchronous_error_says_how_to_find_its_place():
    new = translate(RuntimeError(QUEUE.format("aclnnAdd")), "ascend", ERRORS, ERROR_CODES)
    assert "ASCEND_LAUNCH_BLOCKING=1" in new.hint
