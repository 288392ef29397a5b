"""How errors of torch_npu and CANN read, and what they mean: ``ERRORS`` and ``ERROR_CODES`` of the Ascend vendor.

Shapes from Ascend/pytorch (NPUException.h, NPUQueue.cpp, NPUCachingAllocator.cpp, ProcessGroupHCCL.cpp) and from
reports of users; both the old builds that raise a plain RuntimeError for everything and the new ones are covered.
"""

from __future__ import annotations

from ..errors import Advice, ErrorRule, code_table
from . import _ascend_advice as advice
from . import _common_rules as common
from ._ascend_codes_acl import ACL_CODES
from ._ascend_codes_cann import CANN_CODES
from ._ascend_codes_runtime import RUNTIME_CODES

ERROR_CODES = code_table(ACL_CODES, RUNTIME_CODES, CANN_CODES)

# "<func>:<file>:<line> " before the words; absent in torch_npu's compact output.
_PLACE = r"\s*(?:\S+:\S+:\d+ )?\s*"
_CALL = _PLACE + r"(?:NPU|OPS) function error:"
_HCCL_CALL = _PLACE + r"(?:HCCL function error:|OPS function error: Hc(?:cl|om)\w+)"
_QUEUE = r"The Inner error is reported as above\. +The process exits for this inner error"
_HCCL_QUEUE = _QUEUE + r",\s+and the current working operator name is Hc(?:cl|om)\w+"
_TRAILER = r"[\s\S]*?\[ERROR\] [\d:\-]+ \(PID:\d+, Device:-?\d+, RankID:-?\d+\) ERR\d{5} (?:PTA|OPS|DIST|GRAPH|PROF) "
# CANN's own text with nothing of torch_npu around it: "EZ9999: …", "[PID: 7] <date> Invalid_Argument(EE1001): …".
_CANN_TEXT = r"\s*(?:\[PID: ?\d+\] [\d.:\-]+ )?(?:\w+\()?E[A-Z]\d{4}\)?:? "
_CANN_OLD_TEXT = r"\s*E[1-9]\d{4}:? (?=[\s\S]*(?:\[PID: ?\d+\]|Inner Error|TraceBack \(most recent|Solution:))"
_ANY = rf"(?:{_CALL}|{_HCCL_CALL}|{_QUEUE}|{_CANN_TEXT}|CANN error: )"

_NUMBER = r"error code(?: is|:) ?(\d+)"
_E_LINE = r"^\s*(?:\[PID: ?\d+\] [\d.:\-]+ )?(E[A-Z1-9]\d{4})\b(?= *[:\[])"
_E_BRACKETS = r"\((E[A-Z0-9]\d{4})\)"
_ERR = r"\b(ERR\d{5})\b"
_FATAL = (
    "FORCE STOP|UCE ERROR|HBM MULTI BIT ECC ERROR|SUSPECT MEM ERROR|HCCS LINK ERROR|UB LINK ERROR"
    "|HCCL OP RETRY FAILED|SUSPECT REMOTE ERROR"
)
_RUNTIME_RESULT = r"runtime result = (\d+)"

_ASYNC = "The failing line may be earlier than shown: run once with ASCEND_LAUNCH_BLOCKING=1 to see the true one."
_ASYNC_ZH = "出错位置可能早于堆栈所示：请设置 ASCEND_LAUNCH_BLOCKING=1 运行一次以获得真实堆栈。"

_HOST_MEMORY = common.described(
    "resource", "unchanged", "Out of host memory", "主机内存不足",
    Advice(
        "The host, not the device, has no memory left for pinned buffers.",
        "Use fewer DataLoader workers, a smaller prefetch_factor or pin_memory=False, or a machine with more memory.",
        "主机（而非设备）没有足够内存用于锁页缓冲区。",
        "请减少 DataLoader worker 数、减小 prefetch_factor 或设置 pin_memory=False，或使用内存更大的机器。",
    ),
)  # fmt: skip
_DEVICE_ERROR = common.described("execution", "accelerator", "Device error", "设备错误", advice.INTERNAL)
_MEMORY_ERROR = common.described("resource", "out_of_memory", "Out of device memory", "设备内存不足", advice.MEMORY)
_FATAL_ERROR = common.described("fatal", "accelerator", "Device fault", "设备故障", advice.HARDWARE)
_COLLECTIVE_ERROR = common.described(
    "execution", "distributed", "Collective operation failed", "集合通信失败", advice.COLLECTIVE
)
_OPERATOR_ERROR = common.described(
    "parameter", "not_implemented", "Operator not supported", "算子不支持", advice.OPERATOR
)
_REFUSED = common.described("parameter", "runtime", "Invalid argument", "参数无效", advice.CHECKED)
_DTYPE = common.described(
    "parameter", "runtime", "Data type not supported by collectives", "集合通信不支持该类型", advice.RANKS_DIFFER
)
_LIBRARY = common.described(
    "parameter", "unchanged", "CANN is not found", "找不到 CANN",
    Advice(
        "A library of CANN that torch_npu needs cannot be loaded: CANN is not installed or its environment is not set.",
        "Run 'source /usr/local/Ascend/ascend-toolkit/set_env.sh' (or the set_env.sh of your CANN) in this shell.",
        "torch_npu 依赖的 CANN 库无法加载：未安装 CANN 或未设置环境变量。",
        "请在当前终端执行 source /usr/local/Ascend/ascend-toolkit/set_env.sh（或所用 CANN 的 set_env.sh）。",
    ),
)  # fmt: skip

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        "host out of memory",
        r"Malloc pin memory failed, host out of memory|[^\n]*\b[Aa]clrtMallocHost\w*[^\n]*error code is [23]0\d{4}",
        _HOST_MEMORY,
    ),
    ErrorRule(
        "missing library",
        r"(?:ImportError: )?lib(?:hccl|ascendcl|acl_op_compiler|ge_runner|graph|atb)\.so: cannot open shared object",
        _LIBRARY,
    ),
    common.out_of_memory("NPU"),
    ErrorRule(
        "CANN out of memory",
        _ANY + r"(?=[\s\S]*(?:\bEL0004\b|\bEI0007\b|\bEI0011\b|Failed to allocate))",
        _MEMORY_ERROR,
        codes=(r"\b(EL0004|EI0011|EI0007)\b", _RUNTIME_RESULT, _NUMBER),
        final=True,
    ),
    ErrorRule("collective out of memory", _HCCL_CALL + r"[^\n]*error code is 24\b", _MEMORY_ERROR, (_NUMBER,),
              scope="HCCL:", final=True),
    ErrorRule(
        "hardware fault",
        rf"{_PLACE}(?:(?:NPU|OPS|HCCL) function error:\s*(?:{_FATAL})\b|(?:{_FATAL})\.?\s*(?:\[ERROR\]|\Z))",
        _FATAL_ERROR,
        codes=(_NUMBER, rf"\b({_FATAL})\b"),
    ),
    ErrorRule(
        "kernel for the data type missing",
        rf"(?:{_ANY}|call aclnn)(?=[\s\S]*not implemented for DT_\w+)",
        _OPERATOR_ERROR,
        codes=(_NUMBER, _E_LINE, _E_BRACKETS),
        final=True,
    ),
    ErrorRule(
        "collective call failed",
        rf"{_HCCL_CALL}|{_HCCL_QUEUE}|\[ERROR\] HCCL error in: |HCCL error in: ",
        _COLLECTIVE_ERROR,
        codes=(_E_LINE, _E_BRACKETS, _NUMBER, _ERR),
        scope="HCCL:",
        final=True,
    ),
    ErrorRule(
        "collective failed on the device",
        r"(?=[\s\S]*\bE[IJ]\d{4}\b)" + _ANY,
        _COLLECTIVE_ERROR,
        codes=(r"\b(E[IJ]\d{4})\b", _NUMBER),
        final=True,
        hint=_ASYNC,
        hint_zh=_ASYNC_ZH,
    ),
    ErrorRule("asynchronous error", _QUEUE, _DEVICE_ERROR, (_NUMBER, _E_LINE, _E_BRACKETS, _RUNTIME_RESULT, _ERR),
              hint=_ASYNC, hint_zh=_ASYNC_ZH),
    ErrorRule("call failed", rf"{_CALL}|ACL stream synchronize failed", _DEVICE_ERROR,
              (_NUMBER, _E_LINE, _E_BRACKETS, _ERR)),
    ErrorRule("operator call failed", r"call aclnn\w+ failed", _DEVICE_ERROR,
              (_NUMBER, _E_LINE, r"detail: ?(E[A-Z1-9]\d{4})\b", _E_BRACKETS, _ERR)),
    ErrorRule("operator not in this CANN", r"aclnn\w+(?: or aclnn\w+)? not in \S*libopapi", _OPERATOR_ERROR,
              (_ERR,), final=True),
    ErrorRule(
        "operator fallback forbidden",
        r"The operator '[^'\n]+' would execute its main computation on CPU through dispatcher backend fallback",
        _OPERATOR_ERROR,
        (_ERR,),
        final=True,
    ),
    common.operator_not_supported("NPU", r"\w*PrivateUse1|\w*NPU|\w*npu"),
    common.bad_ordinal(),
    ErrorRule("invalid device ordinal in CANN", rf"{_CANN_TEXT}[\s\S]*\bdevice\b[^\n]*(?:is not in|range is) ?\[",
              common.BAD_ORDINAL, (_E_LINE, _E_BRACKETS), final=True),
    common.no_device("NPUs"),
    common.forked("NPU"),
    common.watchdog("HCCL"),
    ErrorRule("collective data type",
              r"HCCL [\w ]+: Unsupported data type|Unsupported data type for [HL]CCL process group", _DTYPE, (_ERR,),
              final=True),
    ErrorRule("CANN text", rf"{_CANN_TEXT}|{_CANN_OLD_TEXT}|CANN error: |\s*CANN Inner Error\. ", _DEVICE_ERROR,
              (_NUMBER, _E_LINE, _E_BRACKETS)),
    # Anything else that torch_npu itself raised: it signs its errors.
    ErrorRule("signed by torch_npu", _TRAILER, _REFUSED, (_NUMBER, _E_LINE, _E_BRACKETS, _ERR)),
)  # fmt: skip
