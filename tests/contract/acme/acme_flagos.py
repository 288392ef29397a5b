"""Acme accelerators, through the torch_acme plugin: a vendor as another distribution publishes it.

Attested by torch_acme 1.4.0 (names, variables, error texts).
"""

from flagos_shim.errors import Advice, ErrorRule, code_table, group
from flagos_shim.vendor import Probe, Vendor
from flagos_shim.vendors import _common_rules as common

_CARD = Advice(
    "The card's number does not exist in this process.",
    "Compare it with torch.cuda.device_count() and ACME_VISIBLE_DEVICES.",
    "当前进程中不存在该设备编号。",
    "请与 torch.cuda.device_count() 及 ACME_VISIBLE_DEVICES 对照。",
)
ERROR_CODES = code_table(
    group("parameter", "accelerator", _CARD, (("7", "ACME_NO_SUCH_CARD", "Invalid device ordinal", "设备编号无效"),))
)

VENDOR = Vendor(
    name="acme",
    title="Acme One",
    package="torch_acme",
    requirement="torch-acme",
    device_type="acme",
    namespace="torch.acme",
    probe=Probe(files=("/dev/acme[0-9]*",), library="libacme.so"),
    visible_devices="ACME_VISIBLE_DEVICES",
    environment={"PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_ACME_ALLOC_CONF"},
    allocator_options=("max_split_size_mb",),
    collective="accl",
    renames={"CUDAGraph": "AcmeGraph"},
    errors=(
        ErrorRule("out of memory", r"acmeMalloc: no room for ", common.OUT_OF_MEMORY, final=True),
        ErrorRule("status", r"acmeStatus \d+: ", common.BAD_ORDINAL, (r"\AacmeStatus (\d+)",)),
    ),
    error_codes=ERROR_CODES,
)
