"""Cambricon MLU, through the torch_mlu plugin.

Attested by the public torch_mlu sources for torch 2.4 (names, variables, error texts) and Cambricon's user guides. Not
run on a chip here; the texts of newer plugin builds may differ in their tails.
"""

from ..vendor import Probe, Vendor

VENDOR = Vendor(
    name="mlu",
    title="Cambricon MLU",
    aliases=("cambricon",),
    package="torch_mlu",
    recommended_torch="2.4",
    device_type="mlu",
    namespace="torch.mlu",
    probe=Probe(files=("/dev/cambricon_dev[0-9]*",), home=("NEUWARE_HOME",), library="libcnrt.so"),
    visible_devices="MLU_VISIBLE_DEVICES",
    environment={
        "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_MLU_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_MLU_MEMORY_CACHING",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "PYTORCH_CNDEV_BASED_MLU_CHECK",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "TORCH_ALLOW_TF32_CNMATMUL_OVERRIDE",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "TORCH_CNCL_ASYNC_ERROR_HANDLING",
        "TORCH_NCCL_AVOID_RECORD_STREAMS": "TORCH_CNCL_AVOID_RECORD_STREAMS",
        "TORCH_NCCL_BLOCKING_WAIT": "TORCH_CNCL_BLOCKING_WAIT",
        "TORCH_NCCL_COORD_CHECK_MILSEC": "TORCH_CNCL_COORD_CHECK_MILSEC",
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "TORCH_CNCL_DEBUG_INFO_PIPE_FILE",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "TORCH_CNCL_DEBUG_INFO_TEMP_FILE",
        "TORCH_NCCL_DESYNC_DEBUG": "TORCH_CNCL_DESYNC_DEBUG",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "TORCH_CNCL_DUMP_ON_TIMEOUT",
        "TORCH_NCCL_ENABLE_MONITORING": "TORCH_CNCL_ENABLE_MONITORING",
        "TORCH_NCCL_ENABLE_TIMING": "TORCH_CNCL_ENABLE_TIMING",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "TORCH_CNCL_HEARTBEAT_TIMEOUT_SEC",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_CNCL_TRACE_BUFFER_SIZE",
        "TORCH_NCCL_TRACE_CPP_STACK": "TORCH_CNCL_TRACE_CPP_STACK",
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "TORCH_CNCL_WAIT_TIMEOUT_DUMP_MILSEC",
    },
    allocator_options=(
        "max_split_size_mb",
        "garbage_collection_threshold",
        "expandable_segments",
        "roundup_power2_divisions",
    ),
    collective="cncl",
    process_group="torch.distributed:ProcessGroupCNCL",
    renames={"CUDAGraph": "MLUGraph", "CudaError": "CnrtError", "nvtx": "cnpx", "nccl": "cncl"},
    errors="flagos_shim.vendors._mlu_errors:ERRORS",
    error_codes="flagos_shim.vendors._mlu_errors:ERROR_CODES",
    fallback=r"\AThe operator '(aten::[\w.]+)' (?:is not currently supported|fails) on the MLU backend and will fall",
    strict={"ENABLE_FALLBACK_TO_CPU": "0"},
    telemetry="flagos_shim.vendors._cnmon:READER",
)
