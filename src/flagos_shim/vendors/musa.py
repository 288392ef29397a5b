"""Moore Threads MUSA, through the torch_musa plugin.

Attested by the public torch_musa and torchada packages (names, variables) and by issue reports (error texts). Not run
on a chip here; no reader of the vendor's SMI tool, whose machine-readable form is not attested.
"""

from ..vendor import Probe, Vendor

VENDOR = Vendor(
    name="musa",
    title="Moore Threads MUSA",
    aliases=("mthreads",),
    package="torch_musa",
    device_type="musa",
    namespace="torch.musa",
    probe=Probe(files=("/dev/mtgpu.[0-9]*",), home=("MUSA_HOME",), library="libmusart.so"),
    toolkit="musa",
    visible_devices="MUSA_VISIBLE_DEVICES",
    environment={"PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_MUSA_ALLOC_CONF"},
    collective="mccl",
    process_group="torch.distributed:ProcessGroupMCCL",
    renames={
        "CUDAGraph": "MUSAGraph",
        "CudaError": "core._lazy_init.MusaError",
        "DeferredCudaCallError": "core._lazy_init.DeferredMusaCallError",
        "_lazy_call": "core._lazy_init._lazy_call",
    },
    errors="flagos_shim.vendors._other_errors:MUSA_ERRORS",
)
