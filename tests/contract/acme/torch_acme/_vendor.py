"""The names, wordings and variables of the invented maker, as the pretend device shows them."""

from __future__ import annotations

from _pretend.vendor import Vendor

VENDOR = Vendor(
    name="acme",
    label="ACME",
    device_name="Acme One",
    capability=(1, 0),
    processors=4,
    visible_variables=("ACME_VISIBLE_DEVICES",),
    alloc_conf="PYTORCH_ACME_ALLOC_CONF",
    no_caching="PYTORCH_NO_ACME_MEMORY_CACHING",
    collective="accl",
    process_group="ProcessGroupACCL",
    pluggable="AcmePluggableAllocator",
    deferred_call_raises=True,
    texts={
        "oom": "acmeMalloc: no room for {0} on card {1} ({3} of {2} free).{6}",
        "oom_old": "acmeMalloc: no room for {0} on card {1} ({3} of {2} free).{6}",
        "oom_absurd": "acmeMalloc: no room for more than 1EB",
        "fallback": "Acme computes {0} on the host",
        "rescue": "Acme computes {0} on the host",
        "strict": "Acme has no {0}",
        "bad_ordinal": "acmeStatus 7: no such card",
        "allocator_ordinal": "acmeStatus 7: no such card",
        "no_device": "acmeStatus 2: no card",
        "collective": "acclStatus in {0}: {1}",
        "collective_host_tensor": "acclStatus: a tensor on {0}",
    },
)
C = VENDOR.configure()
