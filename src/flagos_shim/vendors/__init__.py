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

# The packages of their plugins: a program may import one before torch, which is then imported first.
PLUGINS = ("torch_npu", "torch_mlu", "torch_musa", "torch_gcu")
