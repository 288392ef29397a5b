"""The contract that a vendor is written against refuses what contradicts itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from flagos_shim import FlagosShimError, registry
from flagos_shim.vendor import Vendor
from flagos_shim.vendors import BUILTIN, PLUGINS


def make(**fields: Any) -> Vendor:
    return Vendor(**{"name": "acme", "title": "Acme", "device_type": "acme", "namespace": "torch.acme", **fields})


def test_a_vendor_is_frozen_and_little_of_it_is_needed() -> None:
    vendor = make(aliases=("ac",))
    assert vendor.names == ("acme", "ac") and vendor.indexed and not vendor.identity
    with pytest.raises(dataclasses.FrozenInstanceError):
        vendor.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["Acme", "", "1acme", "ac me", "acme-ai", "\u00e4cme"])
def test_a_name_is_checked_and_so_is_an_alias(name: str) -> None:
    with pytest.raises(FlagosShimError, match="lower-case letters"):
        make(name=name)
    with pytest.raises(FlagosShimError, match="lower-case letters"):
        make(aliases=(name,))


def test_a_name_is_renamed_or_absent_but_not_both() -> None:
    with pytest.raises(FlagosShimError, match="nvtx stand both in renames and in absent"):
        make(renames={"nvtx": "mstx"}, absent={"nvtx": "torch.profiler"})


def test_cuda_devices_need_identity() -> None:
    with pytest.raises(FlagosShimError, match="needs identity=True"):
        make(device_type="cuda")
    assert make(device_type="cuda", identity=True).identity


def test_an_accelerator_needs_a_namespace() -> None:
    with pytest.raises(FlagosShimError, match=r"needs a namespace, e\.g\. 'torch\.acme'"):
        make(namespace=None)
    assert not make(namespace=None, indexed=False).indexed


@pytest.mark.parametrize("name", BUILTIN)
def test_a_built_in_vendor_stands_under_its_own_name(name: str) -> None:
    vendor = registry.load(BUILTIN[name])
    assert vendor.name == name
    assert vendor.package is None or vendor.package in PLUGINS


def test_no_two_built_in_vendors_share_a_name() -> None:
    names = [name for where in BUILTIN.values() for name in registry.load(where).names]
    assert len(names) == len(set(names))


def test_each_visible_devices_variable_is_not_also_carried_over_as_another() -> None:
    for where in BUILTIN.values():
        vendor = registry.load(where)
        assert vendor.visible_devices not in vendor.environment.values()
        assert "CUDA_VISIBLE_DEVICES" not in vendor.environment
