"""What flagos-diagnose says of a vendor's SDK and of torch's release, without starting anything."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from flagos_shim.cli import diagnose
from flagos_shim.vendor import Probe, Vendor


def make(**fields: Any) -> Vendor:
    return Vendor(**{"name": "acme", "title": "Acme", "device_type": "acme", "namespace": "torch.acme", **fields})


def test_where_the_sdk_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = make(probe=Probe(home=("ACME_HOME", "ACME_OPS")))
    for name in vendor.probe.home:
        monkeypatch.delenv(name, raising=False)
    step = diagnose._sdk(vendor)
    assert (step.state, step.detail) == ("WARN", "ACME_HOME and ACME_OPS unset")
    assert step.remedy == "Install the vendor's SDK and source its environment, which sets ACME_HOME and ACME_OPS."
    monkeypatch.setenv("ACME_HOME", str(tmp_path))
    assert (diagnose._sdk(vendor).state, diagnose._sdk(vendor).detail) == ("OK", f"ACME_HOME={tmp_path}")
    monkeypatch.setenv("ACME_OPS", f"{tmp_path}/gone")
    assert diagnose._sdk(vendor).detail == f"ACME_OPS={tmp_path}/gone: there is no such directory"


@pytest.mark.parametrize(("recommended", "state"), [(None, "OK"), ("2.13", "OK"), ("2.4", "WARN")])
def test_the_recommended_torch(monkeypatch: pytest.MonkeyPatch, recommended: str | None, state: str) -> None:
    monkeypatch.setattr(diagnose, "_version", {"torch": "2.13.0+cpu", "acme-plugin": "1.2"}.get)
    monkeypatch.setitem(sys.modules, "acme_plugin", types.ModuleType("acme_plugin"))
    _torch, plugin = diagnose._packages(make(package="acme_plugin", recommended_torch=recommended))
    assert plugin.state == state
    if state == "WARN":
        assert "attested with torch 2.4, installed is torch 2.13.0+cpu" in plugin.detail
        assert plugin.remedy.startswith("pip install 'torch==2.4.*'")
