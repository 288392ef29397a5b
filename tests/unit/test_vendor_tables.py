"""The static tables beside the built-in vendors say what their objects say, and naming one imports no other."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

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


def test_what_the_installed_torch_npu_reads_under_cudas_names_too_is_carried_over() -> None:
    ascend = registry.load(BUILTIN["ascend"]).environment
    found = importlib.util.find_spec("torch_npu")
    assert found is not None and found.origin is not None
    package = Path(found.origin).parent
    libraries = b"".join(file.read_bytes() for file in [*package.glob("lib/*.so"), *package.glob("_C*.so")])
    # A name of its own ends with a NUL; those that belong to no NCCL of torch's are left out.
    own = {match.decode() for match in re.findall(rb"(?<![A-Z_])TORCH_HCCL_[A-Z_]+(?=\x00)", libraries)}
    only_npu = {f"TORCH_HCCL_{name}" for name in ("STATUS_SAVE_ENABLE", "STATUS_SAVE_INTERVAL", "STATUS_SAVE_PATH")}
    assert own - only_npu - {"TORCH_HCCL_ZERO_COPY"} == {v for v in ascend.values() if v.startswith("TORCH_HCCL_")}
    checks = re.findall(r"PYTORCH_\w+_BASED_NPU_CHECK", (package / "npu" / "__init__.py").read_text())
    assert set(checks) == {ascend["PYTORCH_NVML_BASED_CUDA_CHECK"]}


@pytest.mark.parametrize(
    ("vendor", "prefix"), [("ascend", "TORCH_HCCL_"), ("mlu", "TORCH_CNCL_"), ("gcu", "TORCH_ECCL_")]
)
def test_a_switch_of_torchs_collectives_keeps_its_name(vendor: str, prefix: str) -> None:
    environment = registry.load(BUILTIN[vendor]).environment
    mapped = {source: target for source, target in environment.items() if source.startswith("TORCH_NCCL_")}
    assert mapped and mapped == {source: source.replace("TORCH_NCCL_", prefix) for source in mapped}
