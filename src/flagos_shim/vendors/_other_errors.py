"""Error data of the plugins of which only few texts are attested: MUSA, GCU, XPU and torch_fl (FlagOS).

Out of memory and missing operators for all; for MUSA also its runtime's errors, which are worded as CUDA's are.
Sources: torch (XPU), torch_musa's allocator and lazy initialisation, torch_gcu's allocator, Torch-FL's
``FLAGOS_CHECK``.
"""

from __future__ import annotations

from ..errors import Advice, ErrorCode, ErrorRule, code_table, group
from . import _common_rules as common

_RUNTIME_TEXTS = Advice(
    "The device runtime reports an error; it may belong to an earlier call, for kernels run asynchronously.",
    "Run once with kernel launches blocking (MUSA_LAUNCH_BLOCKING=1) to find the call; then restart the process.",
    "设备运行时报告错误；由于内核异步执行，可能由更早的调用引起。",
    "请设置同步执行（MUSA_LAUNCH_BLOCKING=1）运行一次以定位调用，然后重启进程。",
)
_MUSA_RUNTIME = common.described("execution", "accelerator", "Device runtime error", "设备运行时错误", _RUNTIME_TEXTS)
_MUSA_CODE = r"\A(MUSA error: [^\n]*?)\.?(?:\n|\Z)"

MUSA_ERRORS: tuple[ErrorRule, ...] = (
    common.out_of_memory("MUSA"),
    ErrorRule("runtime out of memory", r"MUSA error: out of memory", common.OUT_OF_MEMORY, (_MUSA_CODE,), final=True),
    ErrorRule("invalid device ordinal", r"MUSA error: invalid device", common.BAD_ORDINAL, (_MUSA_CODE,), final=True),
    ErrorRule("runtime error", r"MUSA error: ", _MUSA_RUNTIME, (_MUSA_CODE,)),
    ErrorRule("check_error", r"[^\n]*\(\d+\)\Z", _MUSA_RUNTIME, (r"\((\d+)\)\Z",), exception="MusaError"),
    common.operator_not_supported("MUSA", r"\w*PrivateUse1|\w*MUSA|\w*musa"),
    common.no_device(r"MUSA (?:GPUs|devices)|MUSAs"),
    common.forked("MUSA"),
)

GCU_ERRORS: tuple[ErrorRule, ...] = (
    common.out_of_memory("GCU"),
    common.operator_not_supported("GCU", r"\w*PrivateUse1|\w*GCU|\w*gcu"),
    common.no_device("GCUs|GCU devices"),
    common.forked("GCU"),
)

XPU_ERRORS: tuple[ErrorRule, ...] = (
    common.out_of_memory("XPU"),
    # SYCL's text when an allocation outside torch's allocator fails, e.g. a kernel's scratch memory.
    ErrorRule(
        "runtime out of memory",
        r"(?:level_zero backend failed|Native API failed)[^\n]*_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)\b",
        common.OUT_OF_MEMORY,
        (r"\b((?:UR_RESULT|PI)_ERROR_OUT_OF_\w+)",),
        final=True,
    ),
    common.operator_not_supported("XPU", r"\w*XPU"),
    common.no_device("XPU devices"),
    common.forked("XPU"),
)

_FLAGOS_INNER = Advice(
    "The FlagOS runtime reports an error without saying more.",
    "Look for the vendor's own message earlier in the log, and check the vendor's driver.",
    "FlagOS 运行时报告错误但没有给出原因。",
    "请在日志中查找厂商自身更早的报错，并检查厂商驱动。",
)

FLAGOS_ERROR_CODES: dict[str, ErrorCode] = code_table(
    group("execution", "accelerator", _FLAGOS_INNER, (
        ("1", "", "Unknown device error", "未知设备错误"),
        ("2", "", "Device not ready", "设备未就绪"),
    ), scope="FlagOS:"),
    group("parameter", "accelerator", common.ORDINAL, (
        ("3", "", "Invalid device ordinal", "设备编号无效"),
    ), scope="FlagOS:"),
    group("resource", "out_of_memory", common.MEMORY, (
        ("4", "", "Out of device memory", "设备内存不足"),
    ), scope="FlagOS:"),
)  # fmt: skip

_FLAGOS_UNKNOWN = common.described("execution", "accelerator", "Device error", "设备错误", _FLAGOS_INNER)

FLAGOS_ERRORS: tuple[ErrorRule, ...] = (
    ErrorRule(
        "device allocator out of memory",
        r"CachingDeviceAllocator(?: \(delegated\))?: failed to allocate",
        common.OUT_OF_MEMORY,
        final=True,
    ),
    common.out_of_memory("FlagOS|FLAGOS"),
    ErrorRule("runtime error", r"FlagOS error: ", _FLAGOS_UNKNOWN, (r"\AFlagOS error: (\d+)",), scope="FlagOS:"),
    common.operator_not_supported("FlagOS|FLAGOS|flagos", r"\w*PrivateUse1|\w*FLAGOS|\w*flagos"),
)
