"""The static tables beside the built-in vendors say what their objects say, and naming one imports no other."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flagos_shim import registry
from flagos_shim.vendor import Vendor
from flagos_shim.vendors import ALIASES, BUILTIN


def test_the_aliases_are_those_of_the_objects() -> None:
    assert {alias: name for name, where in BUILTIN.items() for alias in registry.load(where).aliases} == ALIASES


@pytest.mark.parametrize("name", BUILTIN)
def test_what_a_vendor_names_by_its_place_is_there(name: str) -> None:
    vendor = registry.load(BUILTIN[name])
    assert isinstance(vendor.read("errors"), tuple) and isinstance(vendor.read("error_codes"), dict)
    reader = vendor.read("telemetry")
    assert reader is None or reader.commands


def test_a_vendor_may_hold_the_objects_themselves() -> None:
    vendor = Vendor(name="acme", title="Acme", indexed=False, errors=("rule",), error_codes={"1": "code"})
    assert vendor.read("errors") == ("rule",) and vendor.read("error_codes") == {"1": "code"}
    with pytest.raises(AttributeError):
        Vendor(name="acme", title="Acme", indexed=False, errors="flagos_shim.errors:NOTHING").read("errors")


def test_naming_a_vendor_imports_no_other_and_no_table() -> None:
    code = (
        "import sys; from flagos_shim import registry; registry.resolve('npu');"
        "names = ('flagos_shim.vendors.', 'flagos_shim._smi', 'flagos_shim.errors');"
        "print([m for m in sys.modules if m.startswith(names)])"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == "['flagos_shim.vendors.ascend']"
