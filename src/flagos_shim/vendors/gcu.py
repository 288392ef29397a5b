"""Enflame GCU, through the torch_gcu plugin.

Attested only by public copies of torch_gcu and by Torch-FL's documents (names, variables). Not run on a chip here.
"""

from ..vendor import Probe, Vendor

VENDOR = Vendor(
    name="gcu",
    title="Enflame GCU",
    aliases=("enflame",),
    package="torch_gcu",
    device_type="gcu",
    namespace="torch.gcu",
    probe=Probe(files=("/dev/gcu[0-9]*",), library="libtopsrt.so"),
    visible_devices="TOPS_VISIBLE_DEVICES",
    collective="eccl",
    errors="flagos_shim.vendors._other_errors:GCU_ERRORS",
)
