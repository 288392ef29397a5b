"""Causes and remedies that several Ascend codes share, in English and Chinese. Data only."""

from __future__ import annotations

from ..errors import Advice

_LOG = "Look at the first error in the CANN logs (~/ascend/log, or export ASCEND_SLOG_PRINT_TO_STDOUT=1 and run again)."
_LOG_ZH = "请查看 CANN 日志中最早的一条错误（~/ascend/log；或 export ASCEND_SLOG_PRINT_TO_STDOUT=1 后重跑）。"

PARAMETER = Advice(
    "An argument of a runtime call is outside what the call accepts.",
    "Check shapes, data types, device and stream of the failing call; ASCEND_LAUNCH_BLOCKING=1 shows which it is.",
    "运行时接口收到了不允许的参数。",
    "请检查出错调用的形状、数据类型、设备和流；设置 ASCEND_LAUNCH_BLOCKING=1 可定位到具体调用。",
)
ORDINAL = Advice(
    "The device number does not exist in this process.",
    "Compare it with torch.cuda.device_count() and with ASCEND_RT_VISIBLE_DEVICES (ascending numbers, commas only).",
    "当前进程中不存在该设备编号。",
    "请与 torch.cuda.device_count() 以及 ASCEND_RT_VISIBLE_DEVICES 对照（编号须升序，仅用逗号分隔）。",
)
INIT = Advice(
    "The device was not initialised in this thread or process; often a process forked after first use of the device.",
    "Start worker processes with the 'spawn' method, and call torch.cuda.set_device() before other device calls.",
    "当前线程或进程尚未初始化设备，常见于使用设备之后再 fork 的子进程。",
    "请用 spawn 方式启动子进程，并在其他设备调用之前先调用 torch.cuda.set_device()。",
)
HANDLE = Advice(
    "A stream, event, model or memory handle belongs to another device or context, or is already destroyed.",
    "Use streams and events on the device they were made on, and keep them alive until their work is done.",
    "流、事件、模型或内存句柄属于其他设备或上下文，或已被销毁。",
    "请在创建流和事件的设备上使用它们，并在任务完成之前保持其存活。",
)
CAPTURE = Advice(
    "A call was made that a graph capture in progress does not allow, or the capture was begun and ended wrongly.",
    "Keep synchronisation, allocation outside the pool and other streams out of the captured region; warm up first.",
    "图捕获期间调用了不允许的接口，或捕获的开始与结束不匹配。",
    "请不要在捕获区间内同步、在内存池外申请内存或使用其他流；捕获前先预热。",
)
FILE = Advice(
    "A file or a configuration that CANN needs is missing, unreadable or not of the form this release expects.",
    "Check path and permissions, source set_env.sh of the CANN in use, and reinstall it if the file is damaged.",
    "CANN 需要的文件或配置缺失、不可读，或与当前版本要求的格式不符。",
    "请检查路径与权限，对所用 CANN 执行 source set_env.sh；文件损坏时请重新安装。",
)
MODEL = Advice(
    "An offline model or single-operator model does not fit this CANN release, or its inputs do not fit the model.",
    "Convert the model again with the ATC of this CANN release and compare inputs and outputs with its description.",
    "离线模型或单算子模型与当前 CANN 版本不匹配，或输入与模型描述不符。",
    "请用当前 CANN 版本的 ATC 重新转换模型，并对照模型描述检查输入输出。",
)
MEMORY = Advice(
    "The device has no memory left for this allocation: this program's, another process's, or fragments of both.",
    "Use a smaller batch or activation checkpointing, call torch.cuda.empty_cache(), look for other processes with "
    "npu-smi info, and try PYTORCH_NPU_ALLOC_CONF=expandable_segments:True.",
    "设备内存不足：可能被本程序、其他进程占用，或因碎片无法分配。",
    "请减小 batch 或使用重计算，调用 torch.cuda.empty_cache()，用 npu-smi info 查看其他进程，"
    "并尝试 PYTORCH_NPU_ALLOC_CONF=expandable_segments:True。",
)
RESOURCE = Advice(
    "The device has run out of streams, events, queues or another counted resource.",
    "Reuse streams and events instead of creating new ones, delete those no longer used, run fewer processes a chip.",
    "设备上的流、事件、队列等资源已用尽。",
    "请复用流和事件，删除不再使用的对象，并减少每张卡上的进程数。",
)
OPERATOR = Advice(
    "This CANN release, or this chip, has no kernel for the operator with these data types or shapes.",
    "Upgrade CANN and its kernels package (both must fit the chip), use another data type, or leave the operator to "
    "the CPU by unsetting TORCH_NPU_FALLBACK_CPU_DISABLE.",
    "当前 CANN 版本或芯片没有该算子在此数据类型或形状下的实现。",
    "请升级 CANN 及其 kernels 包（两者须与芯片匹配），更换数据类型，"
    "或取消 TORCH_NPU_FALLBACK_CPU_DISABLE 让算子回退到 CPU。",
)
UNSUPPORTED = Advice(
    "The driver, firmware or chip does not offer this function.",
    "Check with npu-smi info that driver and firmware are those the CANN release asks for, and upgrade them together.",
    "驱动、固件或芯片不支持该功能。",
    "请用 npu-smi info 检查驱动和固件是否符合 CANN 版本要求，并一同升级。",
)
KERNEL = Advice(
    "A kernel on the device failed; the usual reasons are an index out of range, memory already freed, or a faulty "
    "custom operator. The device context cannot be used any more.",
    "Run once with ASCEND_LAUNCH_BLOCKING=1 to find the operator and check its indices and shapes; then restart the "
    "process.",
    "设备上的算子执行失败，常见原因为索引越界、内存已释放或自定义算子有误；设备上下文已不可继续使用。",
    "请设置 ASCEND_LAUNCH_BLOCKING=1 运行一次以定位算子并检查索引与形状，然后重启进程。",
)
AICPU = Advice(
    "An operator that runs on the AI CPU failed; most often an index in gather, scatter or embedding is out of range.",
    "Check index tensors against the sizes they index (ASCEND_LAUNCH_BLOCKING=1 names the operator), then restart.",
    "在 AI CPU 上运行的算子失败，最常见的是 gather、scatter 或 embedding 的索引越界。",
    "请检查索引张量是否越界（设置 ASCEND_LAUNCH_BLOCKING=1 运行一次），然后重启进程。",
)
TIMEOUT = Advice(
    "A task on the device did not end in time: a very long kernel, a hung kernel, or a collective waiting for a rank.",
    "Look at the other ranks for an earlier error; if all are merely slow, raise the limit (HCCL_EXEC_TIMEOUT for "
    "collectives). " + _LOG,
    "设备任务未在规定时间内完成：算子过慢、算子挂死，或集合通信在等待其他 rank。",
    "请先查看其他 rank 是否更早出错；若只是较慢，请调大超时（集合通信用 HCCL_EXEC_TIMEOUT）。" + _LOG_ZH,
)
OVERFLOW = Advice(
    "A computation overflowed while overflow detection was on.",
    "Lower the loss scale or the learning rate, or compute the overflowing layer in float32 or bfloat16.",
    "开启溢出检测时计算发生溢出。",
    "请降低 loss scale 或学习率，或将溢出的层改用 float32 或 bfloat16 计算。",
)
PERMISSION = Advice(
    "The user who runs the program may not use the device.",
    "Add the user to the driver's group (HwHiAiUser), or map the /dev/davinci* files into the container.",
    "运行程序的用户没有使用设备的权限。",
    "请将用户加入驱动所属用户组（HwHiAiUser），或在容器中映射 /dev/davinci* 设备文件。",
)
DEVICE_LOST = Advice(
    "The device does not answer: not started, reset, taken by another container, or broken.",
    "Check it with npu-smi info and npu-smi info -t health -i ID; reset the card or the machine if it is not OK.",
    "设备无响应：未启动、被复位、被其他容器占用或已损坏。",
    "请用 npu-smi info 和 npu-smi info -t health -i ID 检查；状态异常时复位该卡或重启机器。",
)
HARDWARE = Advice(
    "A memory or link fault of the hardware was detected, or a recovery from one was asked for.",
    "Stop using this card, restart from the last checkpoint on another one, and report it with the output of npu-smi.",
    "检测到硬件内存或链路故障，或正在进行故障恢复。",
    "请停用该卡，从最近的检查点在其他卡上恢复训练，并附 npu-smi 输出报修。",
)
INTERNAL = Advice(
    "A layer of CANN reports an inner error without saying more; another code in the same text often does.",
    _LOG + " Check that driver, firmware, CANN and torch_npu are releases that belong together.",
    "CANN 某一层报告内部错误而没有给出原因；同一段文本中的其他错误码往往更有用。",
    _LOG_ZH + "并检查驱动、固件、CANN 与 torch_npu 的版本是否配套。",
)
PROFILING = Advice(
    "The profiler or the data dump was started twice, in the wrong order, or with options this release does not know.",
    "Use one profiler at a time and stop it before starting the next; check its options against this CANN release.",
    "性能采集或数据 dump 被重复启动、顺序有误，或使用了当前版本不支持的选项。",
    "请同一时间只用一种采集方式，先停止再开始下一次，并核对当前 CANN 版本支持的选项。",
)
USAGE = Advice(
    "Runtime functions were called twice or in the wrong order; seldom the program's fault, often two libraries that "
    "both initialise the device.",
    "Let one library initialise the device, and do not finalise it before the last device call.",
    "运行时接口被重复调用或调用顺序有误，多为两个库同时初始化设备所致。",
    "请只由一个库初始化设备，并且不要在最后一次设备调用之前去初始化。",
)
COLLECTIVE = Advice(
    "A collective operation failed on this rank; the reason is often on another rank that died or disagreed earlier.",
    "Find the rank whose log has the earliest error and mend that one; then start all ranks again.",
    "本 rank 的集合通信失败，原因往往在更早出错的其他 rank 上。",
    "请找到日志中最早出错的 rank 并先解决它的问题，然后重新启动所有 rank。",
)
PEER = Advice(
    "Another rank did not come in time: it died, it hangs, it is much slower, or the network between them is broken.",
    "Look at the other ranks' logs for the earliest error; check HCCL_IF_IP, HCCL_SOCKET_IFNAME and the firewall; "
    "raise HCCL_CONNECT_TIMEOUT or HCCL_EXEC_TIMEOUT if ranks are merely slow.",
    "其他 rank 未按时到达：已退出、挂死、明显较慢，或网络不通。",
    "请查看其他 rank 日志中最早的错误；检查 HCCL_IF_IP、HCCL_SOCKET_IFNAME 与防火墙；"
    "若只是较慢，请调大 HCCL_CONNECT_TIMEOUT 或 HCCL_EXEC_TIMEOUT。",
)
RANKS_DIFFER = Advice(
    "The ranks do not agree on the operation, its data type or its size, or the set-up of the cluster is wrong.",
    "Make every rank call the same collectives in the same order with equal shapes and types; check the rank table and "
    "that all machines have the same CANN release.",
    "各 rank 的通信操作、数据类型或大小不一致，或集群配置有误。",
    "请确保各 rank 以相同顺序、相同形状和类型调用集合通信；检查 rank table 以及各机器的 CANN 版本是否一致。",
)
PORT = Advice(
    "The port that HCCL wants to listen on is taken, often by processes of an earlier run.",
    "End the processes of the earlier run (npu-smi info shows them), or set HCCL_IF_BASE_PORT or "
    "HCCL_NPU_SOCKET_PORT_RANGE.",
    "HCCL 需要监听的端口已被占用，常为上一次训练的残留进程。",
    "请结束上一次训练的残留进程（npu-smi info 可查看），或设置 HCCL_IF_BASE_PORT、HCCL_NPU_SOCKET_PORT_RANGE。",
)
CHECKED = Advice(
    "torch_npu checked the arguments of a call and refused them.",
    "Read the sentence in front of the code: it names the argument and what was expected.",
    "torch_npu 检查参数后拒绝了该调用。",
    "请阅读错误码前面的那句话：其中写明了参数名和期望值。",
)
