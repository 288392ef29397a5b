"""The built-in vendors: name -> where its object stands.  Strings only, so that naming one imports nothing."""

BUILTIN = {
    "ascend": "flagos_shim.vendors.ascend:VENDOR",
    "cpu": "flagos_shim.vendors.cpu:VENDOR",
    "cuda": "flagos_shim.vendors.cuda:VENDOR",
}
