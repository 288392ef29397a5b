"""The built-in vendors: name -> where its object stands.  Strings only, so that naming one imports nothing."""

BUILTIN = {
    "ascend": "flagos_shim.vendors.ascend:VENDOR",
    "cpu": "flagos_shim.vendors.cpu:VENDOR",
    "cuda": "flagos_shim.vendors.cuda:VENDOR",
    "dcu": "flagos_shim.vendors.dcu:VENDOR",
    "gcu": "flagos_shim.vendors.gcu:VENDOR",
    "mlu": "flagos_shim.vendors.mlu:VENDOR",
    "musa": "flagos_shim.vendors.musa:VENDOR",
    "xpu": "flagos_shim.vendors.xpu:VENDOR",
}

# Their other names; a test compares this with the objects.
ALIASES = {
    "npu": "ascend", "huawei": "ascend", "cann": "ascend",
    "nvidia": "cuda",
    "rocm": "dcu", "hip": "dcu", "hygon": "dcu",
    "enflame": "gcu",
    "cambricon": "mlu",
    "mthreads": "musa",
    "intel": "xpu",
}  # fmt: skip

# The device types that a saved file may carry, beside CUDA's: the vendors' own, and those of devices without a vendor
# here.  A test compares this with the objects.
TAGS = ("npu", "mlu", "musa", "gcu", "xpu", "hpu", "mps", "privateuseone")

# The modules that patch torch for the same purpose, and what to remove.
RIVALS = {
    "torch_npu.contrib.transfer_to_npu": "remove `from torch_npu.contrib import transfer_to_npu` "
    "and unset TORCH_TRANSFER_TO_NPU",
    "torch_mlu.utils.gpu_migration": "remove `import torch_mlu.utils.gpu_migration`",
    "torchada": "remove `import torchada`",
    "torch_gcu.transfer_to_gcu": "remove `from torch_gcu import transfer_to_gcu`",
    "ipex_to_cuda": "remove `from ipex_to_cuda import ipex_init`",
    "torch_fl": "remove `import torch_fl`: it is a device plugin of its own, and an alternative to this package",
}

# Variables by which a plugin patches torch for the same purpose, at its import, and what to do about one that is set.
RIVAL_SWITCHES = {"TORCH_TRANSFER_TO_NPU": "unset it"}

# Error tables of plugins that are no vendor of this package, in the form of a vendor's fields: rules and codes.
OTHER_ERRORS = {
    "flagos": (
        "flagos_shim.vendors._other_errors:FLAGOS_ERRORS",
        "flagos_shim.vendors._other_errors:FLAGOS_ERROR_CODES",
    )
}

# A vendor whose libraries number their errors alike: what stands before a number of the second library, and the scope
# under which that has its codes.
NUMBER_SCOPES = {"ascend": (r"\bHCCL function error|\bOPS function error: Hc(?:cl|om)", "HCCL:")}

# The packages of their plugins: a program may import one before torch, which is then imported first.
PLUGINS = ("torch_npu", "torch_mlu", "torch_musa", "torch_gcu")
