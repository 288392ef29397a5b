"""Cambricon's names, wordings and variables for the pretend device.

Sources: Cambricon/torch_mlu, branch r2.4_develop (2025-02, for torch 2.4), by the files named below; public reports.
"""

from __future__ import annotations

from _pretend.vendor import Vendor

VENDOR = Vendor(
    name="mlu",
    label="MLU",
    device_name="MLU370-X8",  # as cnmon prints it in public listings
    capability=(3, 7),  # the two digits of the product's name; the real driver's numbers are not attested
    processors=8,
    # mlu/__init__.py, _parse_visible_devices: in this order, CUDA's own variable read last
    visible_variables=("CN_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    alloc_conf="PYTORCH_MLU_ALLOC_CONF",  # csrc/framework/core/caching_allocator.cpp
    no_caching="PYTORCH_NO_MLU_MEMORY_CACHING",
    collective="cncl",
    process_group="ProcessGroupCNCL",
    pluggable="MLUPluggableAllocator",
    deferred_call_raises=False,  # mlu/__init__.py, _lazy_init: the message is built and never raised
    strict=("ENABLE_FALLBACK_TO_CPU", "0"),  # aten/MLUFallback.cpp
    rescue=("ENABLE_MLU_FAIL_FALLBACK", "1"),
    wide_collectives=False,  # csrc/framework/distributed: float64 is sent as float32
    texts={
        # csrc/framework/core/caching_allocator.cpp
        "oom": "MLU out of memory. Tried to allocate {0}. MLU {1} has a total capacity of {2} of which {3} is free.{6} "
        "Of the allocated memory {4} is allocated by PyTorch, and {5} is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting PYTORCH_MLU_ALLOC_CONF=expandable_segments:True "
        "to avoid fragmentation.",
        # the same file, older builds: the class was RuntimeError
        "oom_old": "MLU out of memory. Tried to allocate {0} (MLU {1}; {2} total capacity; {4} already allocated; "
        "{3} free;{6} {7} reserved in total by PyTorch)",
        "oom_absurd": "MLU out of memory. Tried to allocate more than 1EB memory.",
        # aten/MLUFallback.cpp; texts end there with a sentence on performance
        "fallback": "The operator '{0}' is not currently supported on the MLU backend and will fall back to run on "
        "the CPU. This may have performance implications.",
        "rescue": "The operator '{0}' fails on the MLU backend and will fall back to run on the CPU. "
        "This may have performance implications.",
        # the second sentence is not attested
        "strict": "The operator '{0}' is not currently implemented for the MLU device. "
        "Set ENABLE_FALLBACK_TO_CPU=1 to run it on the CPU.",
        # csrc/aten/utils/exceptions.h: names, never numbers; this is what a public report shows for a wrong ordinal
        "bad_ordinal": "CNRT error: invalid argument.",
        "allocator_ordinal": "Invalid device argument {0}: did you call init?",
        "no_device": "No MLU devices are available",
        # csrc/framework/distributed
        "collective": "CNCL error in: process_group_cncl.cpp:0, {0}: {1}",
        "collective_host_tensor": "CNCL only supports MLU tensors, but got a tensor on {0}",
    },
)
C = VENDOR.configure()
