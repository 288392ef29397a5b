"""Intel XPU, which torch itself supports as ``torch.xpu``.

Attested by torch 2.13 (names, error texts) and Intel's user guides for xpu-smi. Not run on a chip here.
"""

from ..vendor import Probe, Vendor

VENDOR = Vendor(
    name="xpu",
    title="Intel XPU",
    aliases=("intel",),
    device_type="xpu",
    namespace="torch.xpu",
    probe=Probe(files=("/dev/dri/renderD[0-9]*",), library="libze_loader.so"),
    visible_devices="ZE_AFFINITY_MASK",
    collective="xccl",
    renames={"CUDAGraph": "XPUGraph"},
    errors="flagos_shim.vendors._other_errors:XPU_ERRORS",
    telemetry="flagos_shim.vendors._other_smi:XPU",
)
