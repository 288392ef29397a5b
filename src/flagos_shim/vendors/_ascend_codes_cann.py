"""CANN's E-codes, torch_npu's ERR codes, HCCL results and the words that stand for a hardware fault. Data only.

Codes and titles of the E-codes are those CANN prints and documents; ERRxxyyy is module xx and kind yyy of torch_npu;
HCCL results are those of the public header ``hccl_types.h``. The wording is this project's own.
"""

from __future__ import annotations

from ..errors import Advice, Category, ErrorCode, Raises, code_table, group
from . import _ascend_advice as advice

_LAYERS = (
    ("EE", "Device runtime", "运行时"),
    ("EF", "Framework layer", "框架层"),
    ("EH", "ACL interface", "ACL 接口层"),
    ("EK", "Profiling layer", "性能采集层"),
    ("EL", "Driver and memory layer", "驱动与内存层"),
    ("ER", "Resource layer", "资源层"),
    ("EZ", "Operator layer", "算子层"),
    ("E1", "Graph engine", "图引擎"),
    ("E2", "Operator fusion", "算子融合"),
    ("E3", "Operator library", "算子库"),
    ("E4", "Operator compiler", "算子编译"),
    ("E5", "Operator compiler", "算子编译"),
    ("E6", "Operator compiler", "算子编译"),
    ("E7", "Operator plugin", "算子插件"),
    ("E8", "Operator library", "算子库"),
    ("E9", "Operator compiler", "算子编译"),
)

_E_CODES = code_table(
    group("execution", "accelerator", advice.INTERNAL, tuple(
        (prefix + "*", "", f"{layer} error", f"{layer_zh}错误") for prefix, layer, layer_zh in _LAYERS
    ), decisive=False),
    group("execution", "accelerator", advice.INTERNAL, tuple(
        (prefix + "9999", "", f"{layer} inner error", f"{layer_zh}内部错误")
        for prefix, layer, layer_zh in _LAYERS if not prefix[1].isdigit()
    ), decisive=False),
    group("parameter", "runtime", advice.PARAMETER, (
        ("EE1001", "", "Invalid argument", "参数无效"),
        ("EE1003", "", "Invalid argument", "参数无效"),
        ("EH0001", "", "Invalid argument", "参数无效"),
        ("EH0002", "", "Argument missing", "参数为空"),
        ("EZ1001", "", "Invalid operator argument", "算子参数无效"),
        ("EZ0001", "", "Invalid input shape", "输入形状无效"),
        ("EZ0002", "", "Invalid operator attribute", "算子属性无效"),
        ("EZ0003", "", "Invalid attribute size", "算子属性大小无效"),
        ("EZ0004", "", "Invalid operator input", "算子输入无效"),
        ("EZ0005", "", "Invalid input size", "输入大小无效"),
        ("EZ0006", "", "Invalid tensor format", "张量格式无效"),
        ("EZ0007", "", "Invalid data type", "数据类型无效"),
    ), decisive=False),
    group("execution", "accelerator", advice.TIMEOUT, (
        ("EE1002", "", "Stream synchronisation timed out", "流同步超时"),
    )),
    group("resource", "out_of_memory", advice.MEMORY, (
        ("EL0004", "", "Out of device memory", "设备内存申请失败"),
    )),
    group("parameter", "not_implemented", advice.OPERATOR, (
        ("EZ0501", "", "Operator not supported", "算子原型未注册"),
        ("EZ3002", "", "Operator not supported", "算子不支持"),
        ("EZ3003", "", "Operator not supported", "找不到支持该算子的实现"),
        ("EZ9010", "", "Operator not supported", "算子解析器未注册"),
    )),
    group("parameter", "runtime", advice.FILE, (
        ("E30006", "", "Operator package check failed", "算子包检查失败"),
        ("E80001", "", "Operator package incomplete", "算子包配置缺失"),
    )),
)  # fmt: skip

_COLLECTIVE_CODES = code_table(
    group("execution", "distributed", advice.COLLECTIVE, (
        ("EI*", "", "Collective operation failed", "集合通信失败"),
        ("EJ*", "", "Collective process failed", "集合通信进程失败"),
    )),
    group("execution", "distributed", advice.COLLECTIVE, (
        ("EI9999", "", "Collective inner error", "集合通信内部错误"),
        ("EJ9999", "", "Collective process inner error", "集合通信进程内部错误"),
    ), decisive=False),
    group("execution", "distributed", advice.PEER, (
        ("EI0002", "", "Collective timed out waiting for a rank", "集合通信等待其他 rank 超时"),
        ("EI0006", "", "Connection between ranks timed out", "rank 间建链超时"),
        ("EI0009", "", "Transport between ranks not set up", "rank 间传输初始化失败"),
        ("EI0010", "", "Peer-to-peer communication failed", "P2P 通信失败"),
        ("EI0012", "", "Copy between devices failed", "设备间 SDMA 拷贝失败"),
        ("EI0013", "", "Network transfer failed", "RoCE 传输出错"),
        ("EI0015", "", "Ranks did not all report", "集群信息收集失败"),
        ("EI0018", "", "Link transfer failed", "UB 传输出错"),
    )),
    group("parameter", "distributed", advice.RANKS_DIFFER, (
        ("EI0001", "", "Invalid HCCL environment variable", "HCCL 环境变量无效"),
        ("EI0003", "", "Invalid argument of a collective", "集合通信参数无效"),
        ("EI0004", "", "Rank table cannot be read", "rank table 解析失败"),
        ("EI0005", "", "Ranks disagree on a collective", "各 rank 的通信参数不一致"),
        ("EI0008", "", "HCCL versions differ between ranks", "各 rank 的 HCCL 版本不一致"),
        ("EI0014", "", "Invalid rank table", "rank table 内容无效"),
        ("EI0016", "", "Invalid HCCL configuration", "HCCL 配置无效"),
        ("EI0017", "", "Rank table incomplete", "rank table 缺少配置"),
    )),
    group("resource", "out_of_memory", advice.MEMORY, (
        ("EI0007", "", "Out of device resources for collectives", "集合通信资源不足"),
        ("EI0011", "", "Out of device memory for collectives", "集合通信设备内存不足"),
    )),
    group("resource", "distributed", advice.PORT, (
        ("EI0019", "", "Host port already in use", "主机端口被占用"),
        ("EI0020", "", "Device port already in use", "设备端口被占用"),
        ("EJ0001", "", "Device still used by an earlier run", "设备仍被上一次训练占用"),
        ("EJ0003", "", "Collective port not available", "集合通信端口不可用"),
    )),
)  # fmt: skip

_HCCL = code_table(
    group("execution", "distributed", advice.COLLECTIVE, (
        ("2", "HCCL_E_PTR", "Collective got an empty pointer", "集合通信收到空指针"),
        ("4", "HCCL_E_INTERNAL", "Collective inner error", "集合通信内部错误"),
        ("6", "HCCL_E_NOT_FOUND", "Collective resource not found", "找不到集合通信资源"),
        ("7", "HCCL_E_UNAVAIL", "Collective resource not available", "集合通信资源不可用"),
        ("8", "HCCL_E_SYSCALL", "System call failed in a collective", "集合通信系统调用失败"),
        ("15", "HCCL_E_RUNTIME", "Device runtime failed in a collective", "集合通信运行时调用失败"),
        ("16", "HCCL_E_DRV", "Driver failed in a collective", "集合通信驱动调用失败"),
        ("17", "HCCL_E_PROFILING", "Profiling failed in a collective", "集合通信 profiling 调用失败"),
        ("18", "HCCL_E_CCE", "Kernel failed in a collective", "集合通信 CCE 调用失败"),
        ("20", "HCCL_E_AGAIN", "Collective must be tried again", "集合通信需要重试"),
        ("22", "HCCL_E_SUSPENDING", "Communicator is suspended", "通信域已挂起"),
    ), scope="HCCL:"),
    group("execution", "distributed", advice.PEER, (
        ("9", "HCCL_E_TIMEOUT", "Collective timed out", "集合通信超时"),
        ("11", "HCCL_E_TCP_CONNECT", "Connection between ranks failed", "rank 间 TCP 连接失败"),
        ("12", "HCCL_E_ROCE_CONNECT", "Network connection between ranks failed", "rank 间 RoCE 连接失败"),
        ("13", "HCCL_E_TCP_TRANSFER", "Transfer between ranks failed", "rank 间 TCP 传输失败"),
        ("14", "HCCL_E_ROCE_TRANSFER", "Network transfer between ranks failed", "rank 间 RoCE 传输失败"),
        ("19", "HCCL_E_NETWORK", "Network failed in a collective", "集合通信网络调用失败"),
        ("21", "HCCL_E_REMOTE", "Remote rank failed", "远端 rank 出错"),
        ("23", "HCCL_E_OPRETRY_FAIL", "Retry of a collective failed", "集合通信重试失败"),
    ), scope="HCCL:"),
    group("parameter", "distributed", advice.RANKS_DIFFER, (
        ("1", "HCCL_E_PARA", "Invalid argument of a collective", "集合通信参数错误"),
        ("5", "HCCL_E_NOT_SUPPORT", "Collective not supported", "集合通信功能不支持"),
        ("10", "HCCL_E_OPEN_FILE_FAILURE", "Collective could not open a file", "集合通信打开文件失败"),
    ), scope="HCCL:"),
    group("resource", "distributed", advice.MEMORY, (
        ("3", "HCCL_E_MEMORY", "Memory error in a collective", "集合通信内存错误"),
    ), scope="HCCL:"),
    group("resource", "out_of_memory", advice.MEMORY, (
        ("24", "HCCL_E_OOM", "Out of device memory for collectives", "集合通信设备内存不足"),
    ), scope="HCCL:"),
)  # fmt: skip

_FATAL_WORDS = code_table(group("fatal", "accelerator", advice.HARDWARE, (
    ("FORCE STOP", "", "Device tasks were stopped", "设备任务被强制终止"),
    ("UCE ERROR", "", "Device memory fault", "设备内存 UCE 故障"),
    ("HBM MULTI BIT ECC ERROR", "", "Device memory ECC error", "HBM 多比特 ECC 错误"),
    ("SUSPECT MEM ERROR", "", "Suspected device memory fault", "疑似设备内存故障"),
    ("HCCS LINK ERROR", "", "Link between devices broken", "HCCS 链路故障"),
    ("UB LINK ERROR", "", "Link between devices broken", "UB 链路故障"),
    ("SUSPECT REMOTE ERROR", "", "Suspected fault of a remote device", "疑似远端设备故障"),
)), group("fatal", "distributed", advice.HARDWARE, (
    ("HCCL OP RETRY FAILED", "", "Retry of a collective failed", "集合通信重试失败"),
)))  # fmt: skip

_MODULES = ("00", "01", "02", "03", "04")  # PTA (torch_npu itself), OPS, DIST, GRAPH, PROF
_KINDS: tuple[tuple[str, Category, Raises, Advice, str, str], ...] = (
    ("001", "parameter", "runtime", advice.CHECKED, "Invalid argument", "参数无效"),
    ("002", "parameter", "runtime", advice.CHECKED, "Invalid type", "类型无效"),
    ("003", "parameter", "runtime", advice.CHECKED, "Invalid value", "取值无效"),
    ("004", "parameter", "runtime", advice.CHECKED, "Invalid pointer", "指针无效"),
    ("005", "execution", "runtime", advice.INTERNAL, "Inner error of torch_npu", "torch_npu 内部错误"),
    ("006", "resource", "runtime", advice.MEMORY, "Memory error", "内存错误"),
    ("007", "parameter", "runtime", advice.UNSUPPORTED, "Feature not supported", "功能不支持"),
    ("008", "parameter", "runtime", advice.FILE, "Resource not found", "资源不存在"),
    ("009", "resource", "runtime", advice.DEVICE_LOST, "Resource not available", "资源不可用"),
    ("010", "execution", "runtime", advice.INTERNAL, "System call failed", "系统调用失败"),
    ("011", "execution", "runtime", advice.TIMEOUT, "Timed out", "超时"),
    ("012", "parameter", "runtime", advice.PERMISSION, "No permission", "没有权限"),
    ("100", "execution", "accelerator", advice.INTERNAL, "Device call failed", "调用 ACL 接口失败"),
    ("200", "execution", "distributed", advice.COLLECTIVE, "Collective call failed", "调用 HCCL 接口失败"),
    ("300", "execution", "runtime", advice.INTERNAL, "Graph engine call failed", "调用 GE 接口失败"),
    ("999", "execution", "runtime", advice.INTERNAL, "Error of the application", "应用异常"),
)


def _err_codes() -> dict[str, ErrorCode]:
    """ERRxxyyy for every module and kind; the meaning depends on the kind alone, and any other code says more."""
    tables = []
    for kind, category, raises, shared, summary, summary_zh in _KINDS:
        rows = tuple((f"ERR{module}{kind}", "", summary, summary_zh) for module in _MODULES)
        tables.append(group(category, raises, shared, rows, decisive=False))
    return code_table(*tables)


CANN_CODES = code_table(_E_CODES, _COLLECTIVE_CODES, _HCCL, _FATAL_WORDS, _err_codes())
