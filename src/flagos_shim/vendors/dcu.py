"""AMD and Hygon DCU: HIP builds of torch, in which `torch.cuda` already is the device.

Attested by torch's documentation of its HIP semantics and by rocm-smi's output in issue reports. Not run on a chip
here.
"""

from ..vendor import Probe, Vendor

VENDOR = Vendor(
    name="dcu",
    title="HIP device (AMD, Hygon DCU)",
    aliases=("rocm", "hip", "hygon"),
    device_type="cuda",
    namespace="torch.cuda",
    identity=True,
    probe=Probe(files=("/dev/kfd",)),
    toolkit="hip",
    visible_devices="HIP_VISIBLE_DEVICES",
    collective="nccl",
    telemetry="flagos_shim.vendors._other_smi:ROCM",
)
