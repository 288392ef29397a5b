"""Enflame GCU, through the torch_gcu plugin.

Attested only by public copies of torch_gcu, by Torch-FL's documents and by the scripts of Enflame's own models (names,
variables). Not run on a chip here.
"""

from ..vendor import Probe, Vendor

VENDOR = Vendor(
    name="gcu",
    title="Enflame GCU",
    aliases=("enflame",),
    package="torch_gcu",
    device_type="gcu",
    namespace="torch.gcu",
    probe=Probe(files=("/dev/gcu[0-9]*",), home=("TOPS_HOME",), library="libtopsrt.so"),
    visible_devices="TOPS_VISIBLE_DEVICES",
    environment={
        "PYTORCH_NVML_BASED_CUDA_CHECK": "PYTORCH_EFML_BASED_GCU_CHECK",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "TORCH_ECCL_ASYNC_ERROR_HANDLING",
        "TORCH_NCCL_AVOID_RECORD_STREAMS": "TORCH_ECCL_AVOID_RECORD_STREAMS",
    },
    collective="eccl",
    errors="flagos_shim.vendors._other_errors:GCU_ERRORS",
)
