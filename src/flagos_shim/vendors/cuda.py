"""NVIDIA and HIP builds of torch: `torch.cuda` already is the device, so only the name `flagos` is added.

Attested by torch's documentation (names, variables) and nvidia-smi's output in issue reports. Not run on a chip here.
"""

from ..vendor import Probe, Vendor

VENDOR = Vendor(
    name="cuda",
    title="NVIDIA CUDA",
    aliases=("nvidia",),
    device_type="cuda",
    namespace="torch.cuda",
    identity=True,
    probe=Probe(files=("/dev/nvidia[0-9]*", "/dev/kfd")),
    toolkit="cuda",
    visible_devices="CUDA_VISIBLE_DEVICES",
    collective="nccl",
    telemetry="flagos_shim.vendors._other_smi:NVIDIA",
)
