"""The checks of a vendor's data that need neither torch nor the plugin; for `check_vendor`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import errors
from ._smi import SmiReader
from .vendor import Fused, Probe, Vendor

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_AMP = ("float16", "bfloat16", "float32", "float64")
_PLACES = ("process_group", "before_load")
# Read where they are needed; these may also be "module:name".
_ELSEWHERE = ("errors", "error_codes", "telemetry")


def check_data(vendor: Vendor) -> Iterator[str]:
    """Yield one sentence for each mistake in the data of ``vendor``: what was found, what was expected, what to do.

    Nothing here needs the plugin.
    """
    wrong = list(_types(vendor))
    yield from wrong
    if wrong:
        return  # what follows reads the fields as what they should be
    yield from _texts(vendor)
    yield from _elsewhere(vendor)


def _types(vendor: Vendor) -> Iterator[str]:
    for found in dataclasses.fields(vendor):
        name, value = found.name, getattr(vendor, found.name)
        kind = str(found.type)
        if name in _ELSEWHERE:
            continue
        if name == "fused":
            yield from _fused(value)
        elif name == "probe":
            yield from _probe(value)
        elif name == "capability":
            if not (isinstance(value, tuple) and len(value) == 2 and all(type(n) is int for n in value)):
                yield f"capability is {value!r}: expected two integers, as in (8, 0)."
        elif kind.startswith("Mapping"):
            if not (isinstance(value, Mapping) and _strings((*value, *value.values()))):
                yield f"{name} is {value!r}: expected a dictionary from text to text; write both in quotes."
        elif kind.startswith("tuple"):
            if not (isinstance(value, tuple) and _strings(value)):
                yield f"{name} is {value!r}: expected a tuple of texts; a single one needs a comma, as in ('one',)."
        elif kind == "bool":
            if type(value) is not bool:
                yield f"{name} is {value!r}: expected True or False."
        elif not ((isinstance(value, str) and value) or (value is None and "None" in kind)):
            yield f"{name} is {value!r}: expected a text{' or None' if 'None' in kind else ''}; write it in quotes."


def _strings(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, str) and value for value in values)


def _probe(probe: Any) -> Iterator[str]:
    if not isinstance(probe, Probe):
        yield f"probe is {probe!r}: expected flagos_shim.vendor.Probe(files=(...), ...)."
        return
    for name in ("files", "home"):
        value = getattr(probe, name)
        if not (isinstance(value, tuple) and _strings(value)):
            yield f"probe.{name} is {value!r}: expected a tuple of texts; a single one needs a comma, as in ('one',)."


def _fused(fused: Any) -> Iterator[str]:
    expected = "expected a dictionary such as {'FUSED_LINEAR': Fused(('torch.nn.functional:linear',), 'module:name')}"
    if not isinstance(fused, Mapping):
        yield f"fused is {fused!r}: {expected}."
        return
    for switch, value in fused.items():
        if not isinstance(value, Fused) or not _VARIABLE.fullmatch(str(switch)):
            yield f"fused[{switch!r}] is {value!r}: {expected}; the key is a part of a variable's name."
            continue
        for place in (*value.targets, value.build):
            if not _PLACE.fullmatch(str(place)):
                yield f"fused[{switch!r}] names {place!r}: expected 'module:name'."


def _texts(vendor: Vendor) -> Iterator[str]:
    if vendor.package is not None and not vendor.probe.files:
        yield "probe.files is empty: without device files the back end is never detected."
    for pattern in vendor.probe.files:
        if not pattern.startswith("/"):
            yield f"probe.files: {pattern!r} is not an absolute pattern such as /dev/acme[0-9]*."
    for name, reason in vendor.absent.items():
        if len(reason.split()) < 2:
            yield f"absent[{name!r}] says {reason!r}: expected what to use instead, in words."
    yield from _variables(vendor)
    for name in _PLACES:
        value = getattr(vendor, name)
        if value is not None and not _PLACE.fullmatch(value):
            yield f"{name} is {value!r}: expected 'module:name', as in 'acme_torch.distributed:ProcessGroupACCL'."
    for dtype in vendor.amp_dtypes:
        if dtype not in _AMP:
            yield f"amp_dtypes has {dtype!r}: expected names of torch's types, of {', '.join(_AMP)}."
    if vendor.recommended_torch is not None and not re.fullmatch(r"\d+\.\d+", vendor.recommended_torch):
        yield f"recommended_torch is {vendor.recommended_torch!r}: expected a release such as '2.4'."
    if vendor.fallback is not None:
        try:
            groups = re.compile(vendor.fallback).groups
        except re.error as error:
            yield f"fallback is {vendor.fallback!r}: no regular expression ({error}); expected one: correct it."
        else:
            if groups != 1:
                yield f"fallback is {vendor.fallback!r} with {groups} groups: expected one, around the operator's name."


def _variables(vendor: Vendor) -> Iterator[str]:
    for source, target in vendor.environment.items():
        if not all(map(_VARIABLE.fullmatch, (source, target))):
            yield f"environment: {source!r} -> {target!r}: expected names of environment variables."
    if vendor.visible_devices is None:
        if not vendor.identity and vendor.indexed:
            yield "visible_devices is unset: CUDA_VISIBLE_DEVICES will not choose cards; name the vendor's variable."
    elif not _VARIABLE.fullmatch(vendor.visible_devices):
        yield f"visible_devices is {vendor.visible_devices!r}: expected the name of an environment variable."
    for field, names in (("strict", tuple(vendor.strict)), ("probe.home", vendor.probe.home)):
        for name in names:
            if not _VARIABLE.fullmatch(name):
                yield f"{field} has {name!r}: expected the name of an environment variable."


def _elsewhere(vendor: Vendor) -> Iterator[str]:
    read: dict[str, Any] = {}
    for name in _ELSEWHERE:
        try:
            read[name] = vendor.read(name)
        except Exception as error:  # whatever a third party's module raises
            place = getattr(vendor, name)
            yield f"{name} is {place!r}: {type(error).__name__}: {error}; expected 'module:name' of what there is."
            return
    rules, codes, reader = (read[name] for name in _ELSEWHERE)
    wrong = False
    if not isinstance(rules, (tuple, list)):
        yield f"errors is {rules!r}: expected a tuple of flagos_shim.errors.ErrorRule."
        wrong = True
    for number, rule in enumerate(rules if isinstance(rules, (tuple, list)) else ()):
        if not isinstance(rule, errors.ErrorRule):
            yield f"errors[{number}] is {rule!r}: expected flagos_shim.errors.ErrorRule(name, pattern, default)."
            wrong = True
            continue
        default: Any = rule.default
        if not isinstance(default, errors.ErrorCode):
            yield f"errors[{number}].default is {default!r}: expected flagos_shim.errors.ErrorCode(...)."
            wrong = True
    if not isinstance(codes, Mapping) or not all(isinstance(code, errors.ErrorCode) for code in codes.values()):
        yield f"error_codes is {codes!r:.200}: expected a dictionary from a code to flagos_shim.errors.ErrorCode."
        wrong = True
    if reader is not None and not isinstance(reader, SmiReader):
        yield f"telemetry is {reader!r}: expected flagos_shim._smi.SmiReader(commands, parse), or None."
    if not wrong:
        yield from errors.check(rules, codes)
