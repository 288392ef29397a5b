"""Ascend ACL codes (100xxx to 500xxx), graph engine and aclnn return codes: number, public name, meaning. Data only.

Numbers and names are those of CANN's public headers (``acl_base_rt.h``, ``ge_error_codes.h``) and of its documentation
of aclnn return codes; the wording is this project's own.
"""

from __future__ import annotations

from ..errors import code_table, group
from . import _ascend_advice as advice

_ACL = code_table(
    group("parameter", "runtime", advice.PARAMETER, (
        ("100*", "", "ACL call refused", "ACL 调用被拒绝"),
        ("100000", "ACL_ERROR_INVALID_PARAM", "Invalid argument", "参数无效"),
        ("100021", "ACL_ERROR_OP_INPUT_NOT_MATCH", "Operator input does not fit", "算子输入不匹配"),
        ("100022", "ACL_ERROR_OP_OUTPUT_NOT_MATCH", "Operator output does not fit", "算子输出不匹配"),
        ("100023", "ACL_ERROR_OP_ATTR_NOT_MATCH", "Operator attribute does not fit", "算子属性不匹配"),
        ("100027", "ACL_ERROR_FORMAT_NOT_MATCH", "Tensor format does not fit", "张量格式不匹配"),
        ("200003", "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED", "Memory address not aligned", "内存地址未对齐"),
    )),
    group("parameter", "accelerator", advice.INIT, (
        ("100001", "ACL_ERROR_UNINITIALIZE", "Device runtime not initialised", "ACL 未初始化"),
    )),
    group("parameter", "runtime", advice.USAGE, (
        ("100002", "ACL_ERROR_REPEAT_INITIALIZE", "Initialised twice", "重复初始化"),
        ("100028", "ACL_ERROR_BIN_SELECTOR_NOT_REGISTERED", "Operator selector not registered", "算子选择器未注册"),
        ("100029", "ACL_ERROR_KERNEL_NOT_FOUND", "Kernel not registered", "算子 kernel 未注册"),
        ("100030", "ACL_ERROR_BIN_SELECTOR_ALREADY_REGISTERED", "Selector registered twice", "算子选择器重复注册"),
        ("100031", "ACL_ERROR_KERNEL_ALREADY_REGISTERED", "Kernel registered twice", "算子 kernel 重复注册"),
        ("100032", "ACL_ERROR_INVALID_QUEUE_ID", "Invalid queue", "队列 ID 无效"),
        ("100033", "ACL_ERROR_REPEAT_SUBSCRIBE", "Subscribed twice", "重复订阅"),
        ("100034", "ACL_ERROR_STREAM_NOT_SUBSCRIBE", "Stream not subscribed", "流未订阅"),
        ("100035", "ACL_ERROR_THREAD_NOT_SUBSCRIBE", "Thread not subscribed", "线程未订阅"),
        ("100037", "ACL_ERROR_REPEAT_FINALIZE", "Finalised twice", "重复去初始化"),
        ("100038", "ACL_ERROR_NOT_STATIC_AIPP", "No static AIPP configuration", "没有静态 AIPP 配置"),
        ("100040", "ACL_ERROR_GROUP_NOT_SET", "Core group not set", "未设置 group"),
        ("100041", "ACL_ERROR_GROUP_NOT_CREATE", "Core group does not exist", "group 不存在"),
        ("148*", "", "ACL call refused", "ACL 调用被拒绝"),
        ("148048", "ACL_ERROR_INVALID_MAX_OPQUEUE_NUM_CONFIG", "Invalid operator cache size", "算子缓存配置无效"),
        ("148051", "ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED", "Resources not released", "关联资源未释放"),
    )),
    group("parameter", "runtime", advice.FILE, (
        ("100003", "ACL_ERROR_INVALID_FILE", "Invalid file", "文件无效"),
        ("100004", "ACL_ERROR_WRITE_FILE", "Cannot write file", "写文件失败"),
        ("100005", "ACL_ERROR_INVALID_FILE_SIZE", "Invalid file size", "文件大小无效"),
        ("100006", "ACL_ERROR_PARSE_FILE", "Cannot parse file", "解析文件失败"),
        ("100007", "ACL_ERROR_FILE_MISSING_ATTR", "Entry missing in file", "文件缺少参数"),
        ("100008", "ACL_ERROR_FILE_ATTR_INVALID", "Invalid entry in file", "文件参数无效"),
        ("100039", "ACL_ERROR_COMPILING_STUB_MODE", "Stub library loaded instead of CANN", "加载了编译桩库而非运行库"),
        ("148049", "ACL_ERROR_INVALID_OPP_PATH", "ASCEND_OPP_PATH missing or wrong", "ASCEND_OPP_PATH 未设置或有误"),
    )),
    group("parameter", "runtime", advice.PROFILING, (
        ("100009", "ACL_ERROR_INVALID_DUMP_CONFIG", "Invalid dump configuration", "dump 配置无效"),
        ("100010", "ACL_ERROR_INVALID_PROFILING_CONFIG", "Invalid profiling configuration", "profiling 配置无效"),
        ("100042", "ACL_ERROR_PROF_ALREADY_RUN", "Profiling already running", "profiling 已在运行"),
        ("100043", "ACL_ERROR_PROF_NOT_RUN", "Profiling not started", "profiling 未启动"),
        ("100044", "ACL_ERROR_DUMP_ALREADY_RUN", "Dump already running", "dump 已在运行"),
        ("100045", "ACL_ERROR_DUMP_NOT_RUN", "Dump not started", "dump 未启动"),
        ("148046", "ACL_ERROR_PROF_REPEAT_SUBSCRIBE", "Profiling subscribed twice", "profiling 重复订阅"),
        ("148047", "ACL_ERROR_PROF_API_CONFLICT", "Profiling calls conflict", "profiling 接口冲突"),
        ("200007", "ACL_ERROR_PROF_MODULES_UNSUPPORTED", "Profiling option not supported", "profiling 配置不支持"),
        ("500005", "ACL_ERROR_PROFILING_FAILURE", "Profiling failed", "profiling 内部错误"),
    )),
    group("parameter", "runtime", advice.MODEL, (
        ("100011", "ACL_ERROR_INVALID_MODEL_ID", "Invalid model", "模型 ID 无效"),
        ("100012", "ACL_ERROR_DESERIALIZE_MODEL", "Cannot read the model's data", "反序列化模型失败"),
        ("100013", "ACL_ERROR_PARSE_MODEL", "Cannot parse the model", "解析模型失败"),
        ("100014", "ACL_ERROR_READ_MODEL_FAILURE", "Cannot read the model", "读取模型失败"),
        ("100015", "ACL_ERROR_MODEL_SIZE_INVALID", "Invalid model size", "模型大小无效"),
        ("100016", "ACL_ERROR_MODEL_MISSING_ATTR", "Model lacks an attribute", "模型缺少参数"),
        ("100017", "ACL_ERROR_MODEL_INPUT_NOT_MATCH", "Model input does not fit", "模型输入不匹配"),
        ("100018", "ACL_ERROR_MODEL_OUTPUT_NOT_MATCH", "Model output does not fit", "模型输出不匹配"),
        ("100019", "ACL_ERROR_MODEL_NOT_DYNAMIC", "Model has fixed shapes", "模型不支持动态形状"),
        ("100020", "ACL_ERROR_OP_TYPE_NOT_MATCH", "Operator type does not fit", "单算子类型不匹配"),
        ("148053", "ACL_ERROR_INVALID_BUNDLE_MODEL_ID", "Invalid model bundle", "bundle 模型 ID 无效"),
    )),
    group("parameter", "not_implemented", advice.OPERATOR, (
        ("100024", "ACL_ERROR_OP_NOT_FOUND", "Operator not supported", "找不到该算子"),
        ("100025", "ACL_ERROR_OP_LOAD_FAILED", "Operator cannot be loaded", "加载算子失败"),
        ("100026", "ACL_ERROR_UNSUPPORTED_DATA_TYPE", "Data type not supported", "数据类型不支持"),
        ("148050", "ACL_ERROR_OP_UNSUPPORTED_DYNAMIC", "Dynamic shape not supported", "算子不支持动态形状"),
        ("148052", "ACL_ERROR_UNSUPPORTED_JPEG", "JPEG coding not supported", "JPEG 编码格式不支持"),
    )),
    group("execution", "accelerator", advice.TIMEOUT, (
        ("100036", "ACL_ERROR_WAIT_CALLBACK_TIMEOUT", "Callback timed out", "等待回调超时"),
    )),
    group("resource", "out_of_memory", advice.MEMORY, (
        ("200000", "ACL_ERROR_BAD_ALLOC", "Out of memory", "内存申请失败"),
        ("300000", "ACL_ERROR_STORAGE_OVER_LIMIT", "Out of device memory", "超出存储上限"),
    )),
    group("parameter", "not_implemented", advice.UNSUPPORTED, (
        ("200001", "ACL_ERROR_API_NOT_SUPPORT", "Function not supported", "接口不支持"),
        ("200006", "ACL_ERROR_FEATURE_UNSUPPORTED", "Feature not supported", "功能不支持"),
    )),
    group("parameter", "accelerator", advice.ORDINAL, (
        ("200002", "ACL_ERROR_INVALID_DEVICE", "Invalid device ordinal", "设备编号无效"),
    )),
    group("parameter", "accelerator", advice.HANDLE, (
        ("200004", "ACL_ERROR_RESOURCE_NOT_MATCH", "Stream or context does not fit", "流或上下文不匹配"),
        ("200005", "ACL_ERROR_INVALID_RESOURCE_HANDLE", "Invalid resource handle", "资源句柄无效"),
    )),
    group("execution", "runtime", advice.INTERNAL, (
        ("500000", "ACL_ERROR_INTERNAL_ERROR", "Unknown inner error", "未知内部错误"),
        ("500001", "ACL_ERROR_FAILURE", "ACL inner error", "ACL 内部错误"),
        ("500002", "ACL_ERROR_GE_FAILURE", "Graph engine inner error", "GE 内部错误"),
        ("500003", "ACL_ERROR_RT_FAILURE", "Runtime inner error", "RUNTIME 内部错误"),
        ("500004", "ACL_ERROR_DRV_FAILURE", "Driver inner error", "驱动内部错误"),
    ), decisive=False),
)  # fmt: skip

_GRAPH_ENGINE = code_table(
    group("parameter", "runtime", advice.MODEL, (
        ("145*", "", "Graph engine refused its input", "GE 参数错误"),
        ("145000", "ACL_ERROR_GE_PARAM_INVALID", "Invalid graph argument", "GE 参数无效"),
        ("145001", "ACL_ERROR_GE_EXEC_NOT_INIT", "Graph engine not initialised", "GE 未初始化"),
        ("145021", "ACL_ERROR_GE_SHAPE_INVALID", "Invalid shape", "形状无效"),
        ("145022", "ACL_ERROR_GE_DATATYPE_INVALID", "Invalid data type", "数据类型无效"),
    )),
    group("resource", "runtime", advice.MEMORY, (
        ("245*", "", "Graph engine memory error", "GE 内存操作失败"),
        ("245000", "ACL_ERROR_GE_MEMORY_ALLOCATION", "Graph engine could not get memory", "GE 内存申请失败"),
    )),
    group("resource", "out_of_memory", advice.MEMORY, (
        ("245002", "ACL_ERROR_GE_DEVICE_MEMORY_OPERATE_FAILED", "Out of device memory", "GE 设备内存操作失败"),
    )),
    group("execution", "runtime", advice.INTERNAL, (
        ("545*", "", "Graph engine failed", "GE 执行失败"),
        ("545000", "ACL_ERROR_GE_INTERNAL_ERROR", "Graph engine inner error", "GE 内部错误"),
        ("545601", "ACL_ERROR_GE_MODEL_EXECUTE_TIMEOUT", "Graph execution timed out", "模型执行超时"),
    ), decisive=False),
)  # fmt: skip

_ACLNN = code_table(
    group("parameter", "runtime", advice.PARAMETER, (
        ("161*", "", "Operator refused its arguments", "算子参数检查失败"),
        ("161001", "ACLNN_ERR_PARAM_NULLPTR", "Operator argument missing", "算子参数为空"),
        ("161002", "ACLNN_ERR_PARAM_INVALID", "Invalid operator argument", "算子参数无效"),
    ), decisive=False),
    group("execution", "accelerator", advice.INTERNAL, (
        ("361*", "", "Operator could not be launched", "算子下发失败"),
        ("361001", "ACLNN_ERR_RUNTIME_ERROR", "Operator launch failed in the runtime", "算子调用运行时失败"),
    ), decisive=False),
    group("parameter", "not_implemented", advice.OPERATOR, (
        # The public name says "null pointer"; in the field it means no kernel for this chip or CANN (see issues of
        # vllm-ascend and Ascend/pytorch that report it at the first operator).
        ("561103", "ACLNN_ERR_INNER_NULLPTR", "Operator kernel not available", "找不到算子 kernel"),
        ("561003", "ACLNN_ERR_INNER_FIND_KERNEL_ERROR", "Operator kernel not found", "查找算子 kernel 失败"),
        ("561107", "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND", "Operator package not found", "找不到算子包路径"),
        ("561112", "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND", "Kernel package not loaded", "未加载算子二进制包"),
        ("561113", "ACLNN_ERR_INNER_OP_FILE_INVALID", "Kernel file invalid", "算子文件无效"),
    )),
    group("execution", "runtime", advice.INTERNAL, (
        ("561*", "", "Operator inner error", "算子内部错误"),
        ("561000", "ACLNN_ERR_INNER", "Operator inner error", "算子内部错误"),
        ("561001", "ACLNN_ERR_INNER_INFERSHAPE_ERROR", "Shape inference failed", "形状推导失败"),
        ("561002", "ACLNN_ERR_INNER_TILING_ERROR", "Tiling failed", "tiling 失败"),
        ("561101", "ACLNN_ERR_INNER_CREATE_EXECUTOR", "Operator executor not created", "创建执行器失败"),
    ), decisive=False),
)  # fmt: skip

ACL_CODES = code_table(_ACL, _GRAPH_ENGINE, _ACLNN)
