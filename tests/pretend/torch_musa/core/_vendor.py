"""Moore Threads' names, wordings and variables for the pretend device.

Sources: MooreThreads/torch_musa by the files named below (releases for torch 2.0 to 2.5), and public reports. What is
marked inferred follows CUDA's form, as that plugin does throughout, and was not seen itself.
"""

from __future__ import annotations

from _pretend.vendor import Vendor

VENDOR = Vendor(
    name="musa",
    label="MUSA",
    device_name="MTT S4000",
    capability=(2, 2),  # architecture 22 among those that public build files name: 21, 22, 31
    processors=48,  # invented
    visible_variables=("MUSA_VISIBLE_DEVICES",),
    alloc_conf="PYTORCH_MUSA_ALLOC_CONF",  # csrc/core/Allocator.cpp
    no_caching="PYTORCH_NO_MUSA_MEMORY_CACHING",  # public launch scripts
    collective="mccl",
    process_group="ProcessGroupMCCL",
    pluggable="MUSAPluggableAllocator",
    deferred_call_raises=True,  # core/_lazy_init.py
    always_strict=True,  # no fallback is registered for the device: torch's own error
    texts={
        # Public reports: "MUSA out of memory. Tried to allocate 896.00 MiB."; the rest is inferred.
        "oom": "MUSA out of memory. Tried to allocate {0}. GPU {1} has a total capacity of {2} of which {3} is free."
        "{6} Of the allocated memory {4} is allocated by PyTorch, and {5} is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting PYTORCH_MUSA_ALLOC_CONF=expandable_segments:True "
        "to avoid fragmentation.",
        # csrc/core/Allocator.cpp, early releases; raised there as a C++ type that Python sees as a RuntimeError
        "oom_old": "MUSA out of memory. Tried to allocate {0} (GPU {1}; {2} total capacity; {4} already allocated; "
        "{3} free;{6} {7} reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
        "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
        "PYTORCH_MUSA_ALLOC_CONF",
        "oom_absurd": "MUSA out of memory. Tried to allocate more than 1EB memory.",  # inferred
        "strict": "Could not run '{0}' with arguments from the 'musa' backend.",
        "bad_ordinal": "MUSA error: invalid device ordinal",  # csrc/core/MUSAException.h gives the form
        "allocator_ordinal": "Invalid device argument {0}: did you call init?",  # inferred
        "no_device": "No MUSA GPUs are available",  # inferred
        # csrc/distributed: the form of a failed call
        "collective": "MCCL error in: ProcessGroupMCCL.cpp:0, {0}: {1}",
        "collective_host_tensor": "Tensors must be MUSA and dense, but got a tensor on {0}",  # inferred
    },
)
C = VENDOR.configure()
