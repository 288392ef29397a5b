"""Each wrong field of a vendor is one sentence: what was found, and what was expected."""

from __future__ import annotations

from typing import Any

import pytest

from flagos_shim import registry
from flagos_shim._vendor_data import check_data
from flagos_shim.errors import ErrorCode, ErrorRule
from flagos_shim.vendor import Fused, Probe, Vendor
from flagos_shim.vendors import BUILTIN

CODE = ErrorCode("", "", "s", "resource", "out_of_memory", "c", "r", "s", "c", "r")

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "aliases": ({"aliases": "ac"}, "aliases is 'ac': expected a tuple of texts; a single one needs a comma"),
    "options": (
        {"allocator_options": "max_split_size_mb"},
        "allocator_options is 'max_split_size_mb': expected a tuple",
    ),
    "title": ({"title": None}, "title is None: expected a text; write it in quotes."),
    "switch": ({"plugin_follows_torch": "yes"}, "plugin_follows_torch is 'yes': expected True or False."),
    "capability": ({"capability": "8.0"}, "capability is '8.0': expected two integers, as in (8, 0)."),
    "visible": ({"visible_devices": "acme visible"}, "visible_devices is 'acme visible': expected the name of an env"),
    "unset": ({"visible_devices": None}, "visible_devices is unset: CUDA_VISIBLE_DEVICES will not choose cards"),
    "strict": ({"strict": {"a b": 1}}, "strict is {'a b': 1}: expected a dictionary from text to text"),
    "strict name": ({"strict": {"a b": "1"}}, "strict has 'a b': expected the name of an environment variable."),
    "home": ({"probe": Probe(files=("/dev/a",), home=("/opt/acme",))}, "probe.home has '/opt/acme': expected the name"),
    "files": ({"probe": Probe(files="/dev/a")}, "probe.files is '/dev/a': expected a tuple of texts"),  # type: ignore[arg-type]
    "probe": ({"probe": ("/dev/a",)}, "probe is ('/dev/a',): expected flagos_shim.vendor.Probe("),
    "fused": ({"fused": {"FUSED_X": "no"}}, "fused['FUSED_X'] is 'no': expected a dictionary such as"),
    "place": (
        {"fused": {"FUSED_X": Fused(("torch.x",), "a:b")}},
        "fused['FUSED_X'] names 'torch.x': expected 'module:",
    ),
    "group": ({"process_group": "acme.Group"}, "process_group is 'acme.Group': expected 'module:name', as in"),
    "load": ({"before_load": "nothing"}, "before_load is 'nothing': expected 'module:name'"),
    "amp": ({"amp_dtypes": ("bf16",)}, "amp_dtypes has 'bf16': expected names of torch's types"),
    "torch": ({"recommended_torch": "2.4.1"}, "recommended_torch is '2.4.1': expected a release such as '2.4'."),
    "fallback": ({"fallback": "(unclosed"}, "fallback is '(unclosed': no regular expression ("),
    "groups": ({"fallback": "none"}, "fallback is 'none' with 0 groups: expected one"),
    "telemetry": ({"telemetry": 3}, "telemetry is 3: expected flagos_shim._smi.SmiReader"),
    "reader": ({"telemetry": "no_such_module:R"}, "telemetry is 'no_such_module:R': ModuleNotFoundError: "),
    "rule": ({"errors": ("text",)}, "errors[0] is 'text': expected flagos_shim.errors.ErrorRule"),
    "default": ({"errors": (ErrorRule("x", "y", "z"),)}, "errors[0].default is 'z': expected"),  # type: ignore[arg-type]
    "rules": ({"errors": 3}, "errors is 3: expected a tuple of flagos_shim.errors.ErrorRule."),
    "codes": ({"error_codes": {"1": "text"}}, "error_codes is {'1': 'text'}: expected a dictionary from a code"),
    "pattern": ({"errors": (ErrorRule("x", "(", CODE),)}, "rule 'x': '(' is no regular expression"),
    "absent": ({"absent": {"nvtx": "nothing"}}, "absent['nvtx'] says 'nothing': expected what to use instead"),
}


def make(**fields: Any) -> Vendor:
    good = {"name": "acme", "title": "Acme", "device_type": "acme", "namespace": "torch.acme"}
    return Vendor(**{**good, "visible_devices": "ACME_VISIBLE_DEVICES", **fields})


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_field(what: str) -> None:
    fields, said = WRONG[what]
    (mistake,) = check_data(make(**fields))
    assert mistake.startswith(said)


@pytest.mark.parametrize("name", BUILTIN)
def test_the_built_in_vendors_have_none(name: str) -> None:
    assert list(check_data(registry.load(BUILTIN[name]))) == []


def test_nor_has_one_with_little_in_it() -> None:
    assert list(check_data(make())) == []
