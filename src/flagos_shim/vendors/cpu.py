"""No accelerator: `cuda` means the CPU, so that a CUDA program runs on any machine.

Attested by torch itself, on which the tests run it.
"""

from ..vendor import Vendor

VENDOR = Vendor(
    name="cpu",
    title="CPU",
    device_type="cpu",
    namespace="flagos_shim.host",
    indexed=False,
    collective="gloo",
)
