"""How errors of torch_mlu and Neuware read, and what they mean: ``ERRORS`` and ``ERROR_CODES`` of the Cambricon vendor.

torch_mlu prints no numbers: a CNRT error is a phrase, a CNNL error a name. So the "codes" here are library and wording
(``CNRT error: invalid argument``), and wordings that are not listed are sorted by what they speak of. Names in brackets
are those of Neuware's public headers (cnrt.h, cnnl.h, cn_api.h). Newer builds append the failing call, `` (API: …)``.
"""

from __future__ import annotations

from ..errors import Advice, ErrorRule, code_table, group
from . import _common_rules as common

_ARGUMENT = Advice(
    "A call got an argument it does not accept; an ordinal out of range reads the same.",
    "Check shapes, data types and device numbers of the failing call against torch.cuda.device_count().",
    "调用收到不允许的参数；设备编号越界时也是同样的文本。",
    "请检查出错调用的形状、数据类型，并将设备编号与 torch.cuda.device_count() 对照。",
)
_EXECUTION = Advice(
    "A kernel on the device failed, often through an index out of range; the device context cannot be used any more.",
    "Check index tensors against the sizes they index, read the CNDRV lines above the error, and restart the process.",
    "设备上的算子执行失败，常因索引越界；设备上下文已不可继续使用。",
    "请检查索引张量是否越界，查看错误之前的 CNDRV 日志，并重启进程。",
)
_DEVICE = Advice(
    "The driver or the device does not answer as expected: not started, busy, reset, or driver and Neuware do not fit.",
    "Check the card with cnmon, compare the driver's release with the one Neuware asks for, and restart the process.",
    "驱动或设备未正常响应：未启动、繁忙、被复位，或驱动与 Neuware 版本不配套。",
    "请用 cnmon 检查设备，核对驱动与 Neuware 的版本要求，并重启进程。",
)
_INNER = Advice(
    "A library of Neuware reports an error of its own.",
    "Set TORCH_MIN_CNLOG_LEVEL=0 and run again to see its log; check that torch_mlu and Neuware belong together.",
    "Neuware 某个库报告内部错误。",
    "请设置 TORCH_MIN_CNLOG_LEVEL=0 重跑以查看日志，并检查 torch_mlu 与 Neuware 版本是否配套。",
)
_COLLECTIVE = Advice(
    "A collective operation failed on this rank; the reason is often on another rank that died or disagreed earlier.",
    "Find the rank whose log has the earliest error and mend that one; then start all ranks again.",
    "本 rank 的集合通信失败，原因往往在更早出错的其他 rank 上。",
    "请找到日志中最早出错的 rank 并先解决它的问题，然后重新启动所有 rank。",
)

ERROR_CODES = code_table(
    group("parameter", "accelerator", _ARGUMENT, (
        ("CNRT error: invalid argument", "cnrtErrorArgsInvalid", "Invalid argument", "参数无效"),
        ("CNRT error: invalid device ordinal", "cnrtErrorDeviceInvalid", "Invalid device ordinal", "设备编号无效"),
        ("CNRT error: invalid memcpy direction", "cnrtErrorMemcpyDirectionInvalid", "Invalid direction", "方向无效"),
        ("CNRT error: invalid resource handle", "cnrtErrorInvalidResourceHandle", "Invalid handle", "句柄无效"),
        ("CNDRV error: invalid argument", "CN_ERROR_INVALID_VALUE", "Invalid argument", "参数无效"),
        ("CNDRV error: CN_ERROR_INVALID_VALUE", "", "Invalid argument", "参数无效"),
    )),
    group("fatal", "accelerator", _DEVICE, (
        ("CNRT error: failed to call the driver-api function", "cnrtErrorCndrvFuncCall", "Driver failed", "驱动失败"),
        ("CNRT error: no device", "cnrtErrorNoDevice", "Device not available", "没有可用设备"),
        ("CNDRV error: initialization error", "CN_ERROR_NOT_INITIALIZED", "Driver not initialised", "驱动未初始化"),
    )),
    group("resource", "out_of_memory", common.MEMORY, (
        ("CNRT error: out of memory", "cnrtErrorNoMem", "Out of device memory", "设备内存不足"),
        ("CNDRV error: CN_MEMORY_ERROR_OUT_OF_MEMORY", "", "Out of device memory", "设备内存不足"),
        ("CNDRV error: device has no memory to alloc", "CN_MEMORY_ERROR_OUT_OF_MEMORY", "Out of memory", "内存不足"),
        ("CNNL_STATUS_ALLOC_FAILED", "", "Out of device memory", "设备内存不足"),
        ("MLUOP_STATUS_ALLOC_FAILED", "", "Out of device memory", "设备内存不足"),
    )),
    group("parameter", "runtime", _ARGUMENT, (
        ("CNNL_STATUS_BAD_PARAM", "", "Invalid operator argument", "算子参数无效"),
        ("MLUOP_STATUS_BAD_PARAM", "", "Invalid operator argument", "算子参数无效"),
    )),
    group("parameter", "not_implemented", common.OPERATOR, (
        ("CNNL_STATUS_NOT_SUPPORTED", "", "Operator not supported", "算子不支持"),
        ("CNNL_STATUS_ARCH_MISMATCH", "", "Operator not supported on this chip", "芯片架构不支持该算子"),
        ("MLUOP_STATUS_NOT_SUPPORTED", "", "Operator not supported", "算子不支持"),
        ("MLUOP_STATUS_ARCH_MISMATCH", "", "Operator not supported on this chip", "芯片架构不支持该算子"),
    )),
    group("execution", "accelerator", _EXECUTION, (
        ("CNNL_STATUS_EXECUTION_FAILED", "", "Kernel failed", "算子执行失败"),
        ("CNNL_STATUS_NUMERICAL_OVERFLOW", "", "Numeric overflow on the device", "设备计算溢出"),
        ("MLUOP_STATUS_EXECUTION_FAILED", "", "Kernel failed", "算子执行失败"),
        ("CN_INVOKE_ERROR_*", "", "Kernel failed", "算子执行失败"),
        ("CN_INVOKE_ERROR_EXECUTED_TIMEOUT", "", "Kernel timed out", "算子执行超时"),
    )),
    group("execution", "runtime", _INNER, (
        ("CNNL_STATUS_*", "", "Operator library error", "算子库错误"),
        ("CNNL_STATUS_NOT_INITIALIZED", "", "Operator library not initialised", "算子库未初始化"),
        ("CNNL_STATUS_INTERNAL_ERROR", "", "Operator library inner error", "算子库内部错误"),
        ("MLUOP_STATUS_*", "", "Operator library error", "算子库错误"),
    ), decisive=False),
)  # fmt: skip

_RUNTIME = common.described("execution", "accelerator", "Device runtime error", "设备运行时错误", _INNER)
_LIBRARY = common.described("execution", "runtime", "Operator library error", "算子库错误", _INNER)
_KERNEL = common.described("execution", "accelerator", "Kernel failed", "算子执行失败", _EXECUTION)
_BAD = common.described("parameter", "accelerator", "Invalid argument", "参数无效", _ARGUMENT)
_HOST = common.described(
    "resource", "unchanged", "Out of host memory", "主机内存不足",
    Advice(
        "The host, not the device, has no memory left.",
        "Use fewer DataLoader workers or pin_memory=False, or a machine with more memory.",
        "主机（而非设备）内存不足。",
        "请减少 DataLoader worker 数或设置 pin_memory=False，或使用内存更大的机器。",
    ),
)  # fmt: skip
_GROUP = common.described("execution", "distributed", "Collective operation failed", "集合通信失败", _COLLECTIVE)
_GROUP_ARGUMENT = common.described(
    "parameter", "runtime", "Invalid argument of a collective", "集合通信参数无效", _ARGUMENT
)

_CODE = r"\A((?:CNRT|CNDRV|CNDEV) error: [^\n(]*?)\.?(?: \(API:|\n|\Z)"
_NAME = r"\b((?:CNNL|MLUOP|CN)_[A-Z_]+)\b"
_DRIVER = r"(?:CNRT|CNDRV|CNDEV) error: "

ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule("host out of memory", _DRIVER + r"[^\n]*(?:host|system) memory", _HOST, (_CODE,)),
    common.out_of_memory("MLU|CNRT"),
    ErrorRule("runtime out of memory",
              _DRIVER + r"[^\n]*(?:out of memory|OUT_OF_\w*MEMORY|no (?:sufficient )?memory|(?:not enough|insufficient)"
              r"[^\n]*memory)",
              common.OUT_OF_MEMORY, (_CODE,), final=True),
    ErrorRule("runtime refused an argument", _DRIVER + r"(?:invalid|illegal (?:argument|value|parameter))", _BAD,
              (_CODE,)),
    ErrorRule("runtime lacks a feature", _DRIVER + r"[^\n]*not support", common.NOT_SUPPORTED, (_CODE,)),
    ErrorRule("kernel failed", _DRIVER + r"[^\n]*(?:illegal|trap|assert|kernel|invoke|INVOKE|time ?out|TIMEOUT)",
              _KERNEL, (_NAME, _CODE)),
    ErrorRule("runtime error", _DRIVER, _RUNTIME, (_NAME, _CODE)),
    ErrorRule("operator library error", r"(?:CNNL|MLUOPS?) error: ", _LIBRARY,
              (_NAME, r"\A((?:CNNL|MLUOPS?) error: [^\n(]*?)\.?(?: \(API:|\n|\Z)")),
    ErrorRule("check_error", r"[^\n]*\(\d+\)\Z", _RUNTIME, (r"\((\d+)\)\Z",), exception="CnrtError"),
    ErrorRule("collective call failed", r"CNCL error in: ", _GROUP),
    common.watchdog("CNCL"),
    ErrorRule("collective argument", r"(?:Unconvertible CNCL type|CNCL only supports MLU tensors)", _GROUP_ARGUMENT),
    common.operator_not_supported("MLU", r"\w*PrivateUse1|\w*MLU|\w*mlu"),
    common.bad_ordinal(),
    common.no_device("MLU devices|MLUs"),
    common.forked("MLU"),
)  # fmt: skip
