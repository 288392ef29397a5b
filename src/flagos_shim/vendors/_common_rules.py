"""Error rules that every plugin needs in the same shape: torch's own sentences with the plugin's device word in them.

Each function takes the words as the plugin prints them (``"NPU"``, ``"MLU"``) and returns one :class:`ErrorRule`.
Plugins are modelled on torch's CUDA code, so these sentences differ in that word only.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ..errors import Advice, Category, ErrorCode, ErrorRule, Raises

# Words that only an allocator or a vendor's runtime writes; a text without any of them is somebody's own.
DEVICE_OOM = re.compile(
    r"\b(?:NPU|MLU|CNRT|MUSA|XPU|GCU|CUDA|HIP|FlagOS|MPS backend) out of memory\b|\b\w+ out of memory\. [Tt]ried to "
    r"|\bEL0004\b|\bEI00(?:07|11)\b|\b[Ff]ailed to allocate\b|function error: |\bCN(?:RT|NL|DRV|CL) error\b"
    r"|\bThe Inner error is reported as above\b|_ERROR_OUT_OF_DEVICE_MEMORY\b"
)
HOST_OOM = re.compile(r"host out of memory|DefaultCPUAllocator|[Mm]allocHost\w*[^\n]*error code is ")

MEMORY = Advice(
    "The device has no memory left for this allocation: this program's, another process's, or fragments of both.",
    "Use a smaller batch or activation checkpointing, call torch.cuda.empty_cache(), and look for other processes on "
    "the card with the vendor's SMI tool.",
    "设备内存不足：可能被本程序、其他进程占用，或因碎片无法分配。",
    "请减小 batch 或使用重计算，调用 torch.cuda.empty_cache()，并用厂商的 SMI 工具查看卡上的其他进程。",
)
OPERATOR = Advice(
    "The plugin has no kernel for this operator, and the fallback to the CPU is switched off or not possible.",
    "Upgrade plugin and toolkit together, use another data type, or switch the fallback to the CPU on again.",
    "插件没有该算子的实现，且 CPU 回退被关闭或不可用。",
    "请同时升级插件与工具包，更换数据类型，或重新打开 CPU 回退。",
)
_FORK = Advice(
    "A process that had used the device was forked; the child cannot use the device.",
    "Start worker processes with the 'spawn' method (torch.multiprocessing.set_start_method('spawn')), or do not touch "
    "the device before forking.",
    "使用过设备的进程被 fork，子进程无法再使用设备。",
    "请使用 spawn 方式启动子进程（torch.multiprocessing.set_start_method('spawn')），或在 fork 之前不要使用设备。",
)
_NO_DEVICE = Advice(
    "The plugin is there, but it sees no device: no driver, no device file in the container, or all of them hidden.",
    "Run flagos-diagnose; look at the variable that hides devices and at the /dev files of the container.",
    "插件已安装但看不到设备：驱动缺失、容器未映射设备文件，或设备全部被屏蔽。",
    "请运行 flagos-diagnose；检查设备可见性变量以及容器中的 /dev 设备文件。",
)
ORDINAL = Advice(
    "The device number does not exist in this process.",
    "Compare it with torch.cuda.device_count() and with the variable that chooses the visible devices.",
    "当前进程中不存在该设备编号。",
    "请与 torch.cuda.device_count() 以及设备可见性变量对照。",
)
_WATCHDOG = Advice(
    "A collective did not end in time: another rank died, hangs, is much slower, or calls something else.",
    "Find the rank whose log has the earliest error; raise the timeout of init_process_group if ranks are merely slow.",
    "集合通信未按时完成：其他 rank 已退出、挂死、明显较慢，或调用顺序不一致。",
    "请找到日志中最早出错的 rank；若只是较慢，请调大 init_process_group 的 timeout。",
)


def described(category: Category, raises: Raises, summary: str, summary_zh: str, advice: Advice) -> ErrorCode:
    """An :class:`ErrorCode` without a code, for a rule's ``default``."""
    cause, remedy, cause_zh, remedy_zh = advice
    return ErrorCode("", "", summary, category, raises, cause, remedy, summary_zh, cause_zh, remedy_zh)


OUT_OF_MEMORY = described("resource", "out_of_memory", "Out of device memory", "设备内存不足", MEMORY)
NOT_SUPPORTED = described("parameter", "not_implemented", "Operator not supported", "算子不支持", OPERATOR)
FORKED = described(
    "parameter", "runtime", "Cannot re-initialize CUDA in forked subprocess", "fork 的子进程不能再初始化设备", _FORK
)  # Accelerate's notebook_launcher looks for this sentence with CUDA in it
NO_DEVICE = described("parameter", "runtime", "No CUDA GPUs are available", "没有可用设备", _NO_DEVICE)
BAD_ORDINAL = described("parameter", "accelerator", "Invalid device ordinal", "设备编号无效", ORDINAL)
WATCHDOG = described("execution", "distributed", "Collective timed out", "集合通信超时", _WATCHDOG)


def out_of_memory(words: str) -> ErrorRule:
    """The caching allocator's error; ``words`` is a regular expression for the device word."""
    return ErrorRule(
        "allocator out of memory",
        rf"(?:{words}) out of memory(?:\. (?:Tried|Allocation|NPUWorkspaceAllocator tried|device id)\b|[. ]*\Z| \()",
        OUT_OF_MEMORY,
        final=True,
    )


def operator_not_supported(words: str, keys: str) -> ErrorRule:
    """No kernel and no fallback; ``keys`` is a regular expression for the dispatch keys that mean this device."""
    return ErrorRule(
        "operator not supported",
        r"(?:(?:CAUTION: )?The operator '[^'\n]+' is not currently (?:implemented|supported) (?:for|on) "
        rf"the (?:{words})\b"
        rf"|Could not run '[^'\n]+' with arguments from the '(?:{keys})' backend)",
        NOT_SUPPORTED,
        codes=(r"\b(ERR\d{5})\b",),
        final=True,
    )


def forked(words: str) -> ErrorRule:
    """The device used in a forked child."""
    return ErrorRule("forked child", rf"Cannot re-initialize (?:{words}) in forked subprocess", FORKED, final=True)


def no_device(words: str) -> ErrorRule:
    """The plugin sees no device."""
    return ErrorRule("no device", rf"No (?:{words}) are available", NO_DEVICE, codes=(r"\b(ERR\d{5})\b",), final=True)


def bad_ordinal() -> ErrorRule:
    """A device number out of range, as the plugins' copies of torch's allocator and stream code word it."""
    return ErrorRule(
        "invalid device ordinal",
        r"(?:[^\n]*INTERNAL ASSERT FAILED at [^\n]*please report a bug to PyTorch\. )?"
        r"(?:Invalid device_index ?: |Invalid device argument -?\d+: did you call init\?|device id must be positive!)",
        BAD_ORDINAL,
        codes=(r"\b(ERR\d{5})\b",),
        final=True,
    )


def watchdog(library: str) -> ErrorRule:
    """The process group's watchdog or blocking wait; ``library`` is ``HCCL`` or ``CNCL``."""
    return ErrorRule(
        "collective timed out",
        rf"(?:\[[^\]\n]*\] ?)*(?:Watchdog caught collective operation timeout: Work{library}\b"
        rf"|[^\n]*timed out in blocking wait \(TORCH_{library}_BLOCKING_WAIT=1)"
        rf"|Some {library} operations have failed or timed out\.",
        WATCHDOG,
        codes=(r"\b(ERR\d{5})\b",),
        final=True,
    )


# What this package itself says of a device, and torch of one that CUDA lacks: the words are torch's own already.
OWN_WORDS = (
    ErrorRule("ordinal refused", r"CUDA error: invalid device ordinal\nDevice \d+ was asked for, there ", BAD_ORDINAL),
    ErrorRule(
        "ordinal in a file refused",
        r"Attempting to deserialize object on CUDA device \d+ but torch\.cuda\.device_count\(\) is ",
        replace(BAD_ORDINAL, raises="runtime"),
    ),
    ErrorRule("no card visible", r"No CUDA GPUs are available\Z", NO_DEVICE),
)
