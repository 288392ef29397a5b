"""Huawei Ascend NPU, through the torch_npu plugin.

Attested by the torch_npu 2.13.0 wheel (names), Ascend/pytorch sources (variables, errors) and CANN documentation.
"""

import os

from ..vendor import Probe, Vendor


def _prepare() -> None:
    """Where a rehearsal is asked for, host memory stands in for the chip as soon as the plugin is imported."""
    from ..rehearse import prepare

    prepare("ascend", os.environ)


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
    },
    collective="hccl",
    process_group="torch_npu:_C._distributed_c10d.ProcessGroupHCCL",
    compile_backend="npu",
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
    errors="flagos_shim.vendors._ascend_errors:ERRORS",
    error_codes="flagos_shim.vendors._ascend_errors:ERROR_CODES",
    telemetry="flagos_shim.vendors._npu_smi:READER",
    prepare=_prepare,
)
