"""Functions with a device argument are found from their documentation first, which must not lose one."""

from __future__ import annotations


def test_no_function_with_a_device_in_a_schema_is_lost(run_isolated) -> None:  # type: ignore[no-untyped-def]
    run_isolated(
        """
import types
from flagos_shim import _startup
_startup.withdraw()
import torch
from flagos_shim.patches.factories import _PLACES, _c_module, _takes_device
import importlib
lost, found = [], 0
for module_name, _behind, prefix in _PLACES:
    module = _c_module(module_name) if "_C" in module_name else importlib.import_module(module_name)
    for name, function in vars(module).items():
        if isinstance(function, types.BuiltinFunctionType) and not name.startswith("__"):
            schemas = torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}")
            if any(argument.name == "device" for schema in schemas for argument in schema.arguments):
                found += 1
                if not _takes_device(prefix + name, function):
                    lost.append(name)
assert found > 40 and not lost, (found, lost)
""",
        backend=None,
        env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    ).ok()
