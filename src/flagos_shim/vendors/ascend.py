"""Huawei Ascend NPU, through the torch_npu plugin.

Attested by the torch_npu 2.13.0 wheel (names), Ascend/pytorch sources (variables, errors) and CANN documentation.
"""

from ..vendor import Probe, Vendor
from ._ascend_errors import ERROR_CODES, ERRORS

VENDOR = Vendor(
    name="ascend",
    title="Huawei Ascend NPU",
    aliases=("npu", "huawei", "cann"),
    package="torch_npu",
    own_packages=("torchair",),
    requirement="torch-npu",
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
    compile_backend="npu",
    renames={"CUDAGraph": "NPUGraph"},
    errors=ERRORS,
    error_codes=ERROR_CODES,
    conflicts={
        "torch_npu.contrib.transfer_to_npu": "remove `from torch_npu.contrib import transfer_to_npu` "
        "and unset TORCH_TRANSFER_TO_NPU"
    },
)
