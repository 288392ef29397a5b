"""Huawei Ascend NPU, through the torch_npu plugin.

Attested by the torch_npu 2.13.0 wheel (names), Ascend/pytorch sources (variables, errors) and CANN documentation.
"""

from ..vendor import Fused, Probe, Vendor

VENDOR = Vendor(
    name="ascend",
    title="Huawei Ascend NPU",
    aliases=("npu", "huawei", "cann"),
    package="torch_npu",
    own_packages=("torchair",),
    requirement="torch-npu",
    plugin_follows_torch=True,
    device_type="npu",
    namespace="torch.npu",
    probe=Probe(files=("/dev/davinci[0-9]*",), library="libascendcl.so"),
    toolkit="cann",
    visible_devices="ASCEND_RT_VISIBLE_DEVICES",
    visible_ascending=True,
    environment={
        "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_NPU_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_NPU_MEMORY_CACHING",
        "CUDA_LAUNCH_BLOCKING": "ASCEND_LAUNCH_BLOCKING",
        "NCCL_SOCKET_IFNAME": "HCCL_SOCKET_IFNAME",
        "NCCL_IB_TC": "HCCL_RDMA_TC",
        "NCCL_IB_SL": "HCCL_RDMA_SL",
        "NCCL_IB_TIMEOUT": "HCCL_RDMA_TIMEOUT",
        "NCCL_IB_RETRY_CNT": "HCCL_RDMA_RETRY_CNT",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "TORCH_HCCL_ASYNC_ERROR_HANDLING",
        "TORCH_NCCL_BLOCKING_WAIT": "TORCH_HCCL_BLOCKING_WAIT",
        "TORCH_NCCL_DESYNC_DEBUG": "TORCH_HCCL_DESYNC_DEBUG",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "TORCH_HCCL_DUMP_ON_TIMEOUT",
        "TORCH_NCCL_ENABLE_MONITORING": "TORCH_HCCL_ENABLE_MONITORING",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "TORCH_HCCL_HEARTBEAT_TIMEOUT_SEC",
        "TORCH_NCCL_HIGH_PRIORITY": "TORCH_HCCL_HIGH_PRIORITY",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_HCCL_TRACE_BUFFER_SIZE",
    },
    allocator_options=("max_split_size_mb", "garbage_collection_threshold", "expandable_segments"),
    collective="hccl",
    process_group="torch_npu:_C._distributed_c10d.ProcessGroupHCCL",
    trace_library="libmspti.so",
    before_load="torch_npu.utils.serialization:_update_cpu_remap_info",
    compile_backend="npu",
    fused={
        "FUSED_LINEAR": Fused(
            ("torch.nn.functional:linear", "torch._C:_nn.linear"), "flagos_shim.vendors._npu_fused:linear"
        ),
        "FUSED_LAYERNORM": Fused(
            ("torch:layer_norm", "torch._C:_VariableFunctionsClass.layer_norm"),
            "flagos_shim.vendors._npu_fused:layer_norm",
        ),
    },
    renames={
        "CUDAGraph": "NPUGraph",
        "CUDAPluggableAllocator": "NPUPluggableAllocator",
        "DeferredCudaCallError": "_DeferredNpuCallError",
        "cudart": "npurt",
        "cudart.cudaHostRegister": "npuHostRegister",
        "cudart.cudaHostUnregister": "npuHostUnregister",
        "cudart.cudaStreamCreate": "npuStreamCreate",
        "cudart.cudaStreamDestroy": "npuStreamDestroy",
        "memory._CUDAAllocator": "memory._NPUAllocator",
        "nvtx.mark": "mstx.mark",
        "nvtx.range_push": "mstx.range_push",
        "nvtx.range_pop": "mstx.range_pop",
        "nvtx.range_start": "mstx.range_start",
        "nvtx.range_end": "mstx.range_end",
    },
    absent={"current_blas_handle": "call torch's matrix operators"},
    errors="flagos_shim.vendors._ascend_errors:ERRORS",
    error_codes="flagos_shim.vendors._ascend_errors:ERROR_CODES",
    fallback=r"\ACAUTION: The operator '(aten::[\w.]+)' is not currently supported on the NPU backend",
    strict={"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"},
    telemetry="flagos_shim.vendors._npu_smi:READER",
)
