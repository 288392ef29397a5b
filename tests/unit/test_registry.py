"""From what a user says to a vendor: names, entry points of other distributions, and what refuses them."""

from __future__ import annotations

import logging
import shutil
import sys
import types
from pathlib import Path
from typing import Callable

import pytest

from flagos_shim import BackendUnavailableError, ConflictError, FlagosShimError, UnknownBackendError, registry
from flagos_shim.vendor import Probe, Vendor

Publish = Callable[..., None]

GOOD = "from flagos_shim.vendor import Vendor\nVENDOR = Vendor({fields})\n"
ACME = "name='acme', title='Acme', device_type='acme', namespace='torch.acme'"


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Installs a distribution with entry points, as pip would."""

    def publish(dist: str, text: str, **points: str) -> None:
        folder = tmp_path / dist
        info = folder / f"{dist}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[flagos_shim.vendors]", *lines, ""]))
        (folder / f"{dist}_vendor.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, f"{dist}_vendor", raising=False)

    return publish


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("ascend", "ascend"),
        ("NPU", "ascend"),
        (" huawei ", "ascend"),
        ("cann", "ascend"),
        ("CPU", "cpu"),
        ("nvidia", "cuda"),
    ],
)
def test_names_and_aliases_in_any_case(said: str, name: str) -> None:
    assert registry.resolve(said).name == name


def test_an_unknown_name_lists_the_known_ones_and_where_others_come_from() -> None:
    with pytest.raises(UnknownBackendError) as caught:
        registry.resolve("tpu")
    text = str(caught.value)
    assert text.startswith("Unknown back end 'tpu'. Known: ascend (npu, huawei, cann), cpu, cuda (nvidia), ")
    assert "Others come from packages that publish the entry point group 'flagos_shim.vendors'" in text
    assert "mlu (cambricon)" in text and "musa (mthreads)" in text


def test_a_third_partys_vendor_is_found_by_name_and_alias(publish: Publish) -> None:
    publish("acmeshim", GOOD.format(fields=ACME + ", aliases=('ac',)"), acme="acmeshim_vendor:VENDOR")
    assert registry.resolve("acme").title == registry.resolve("AC").title == "Acme"
    assert list(registry.vendors())[-1] == "acme"
    with pytest.raises(UnknownBackendError, match=r"Known: acme \(ac\), ascend"):
        registry.resolve("nobody")


def test_asking_for_a_built_in_vendor_imports_nothing_of_third_parties(publish: Publish) -> None:
    publish("brokenshim", "raise SystemError('imported')\n", broken="brokenshim_vendor:VENDOR")
    assert registry.resolve("cpu").name == "cpu"
    assert "brokenshim_vendor" not in sys.modules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module_here\n", "ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("VENDOR = 3\n", "'newshim_vendor:VENDOR' is int, expected flagos_shim.vendor.Vendor"),
        ("OTHER = 3\n", "AttributeError: module 'newshim_vendor' has no attribute 'VENDOR'"),
        ("def f(:\n", "SyntaxError"),
        ("raise RuntimeError('no licence')\n", "RuntimeError: no licence"),
        (
            GOOD.format(fields=ACME.replace("acme'", "other'")),
            "has the name 'other'; the entry point must have the same",
        ),
    ],
)
def test_a_broken_vendor(publish: Publish, text: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    publish("newshim", text, acme="newshim_vendor:VENDOR")
    with pytest.raises(FlagosShimError) as caught:
        registry.resolve("acme")
    assert str(caught.value).startswith("The vendor 'acme' published by newshim is broken: ") and reason in str(
        caught.value
    )
    with caplog.at_level(logging.WARNING, "flagos_shim"):
        assert "acme" not in registry.vendors()
    assert "published by newshim is broken" in caplog.text and "It is left out." in caplog.text


@pytest.mark.parametrize(
    ("text", "used"),
    [
        (GOOD.format(fields=ACME + ", from_the_future=1"), "from_the_future"),
        ("from flagos_shim.vendor import FromTheFuture\n", "FromTheFuture"),
    ],
)
def test_a_vendor_that_is_too_new(publish: Publish, text: str, used: str, caplog: pytest.LogCaptureFixture) -> None:
    publish("newshim", text, acme="newshim_vendor:VENDOR")
    with pytest.raises(FlagosShimError, match="was written for a newer flagos_shim: it uses ") as caught:
        registry.resolve("acme")
    said = str(caught.value)
    assert said.startswith("The vendor 'acme' published by newshim is too new: ") and "broken" not in said
    assert repr(used) in said and said.endswith("pip install --upgrade flagos-shim")
    assert "acme" not in registry.vendors() and "is too new" in caplog.text


# Each as a plugin's package would be: importing the vendor's module starts it.
STARTS = "import torch\n" + GOOD.format(fields=ACME)
HARMS = {
    "imports torch": (STARTS, "imports torch when it is imported"),
    "hides it": ("try:\n    import torch\nexcept ImportError:\n    pass\n" + GOOD.format(fields=ACME), "imports torch"),
    "is the plugin": (GOOD.format(fields=ACME + ", package='newshim_vendor'"), "imports newshim_vendor when"),
    "ends the program": ("raise SystemExit(3)\n", "SystemExit: 3"),
}


@pytest.mark.parametrize("what", HARMS)
def test_a_module_that_starts_something_is_refused(
    publish: Publish, what: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, reason = HARMS[what]
    monkeypatch.delitem(sys.modules, "torch", raising=False)  # another test may have imported it
    publish("newshim", text, acme="newshim_vendor:VENDOR")
    assert "acme" not in registry.vendors() and reason in caplog.text
    assert "newshim_vendor" not in sys.modules, "it was imported although nobody has asked for it"
    with pytest.raises(FlagosShimError) as caught:
        registry.resolve("acme")
    assert reason in str(caught.value) and "torch" not in sys.modules


def test_a_module_that_hangs_is_left_out(
    publish: Publish, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MODULE_LIMIT", 2.0)
    publish("newshim", "import time\ntime.sleep(600)\n", acme="newshim_vendor:VENDOR")
    assert "acme" not in registry.vendors() and "no answer within 2 s" in caplog.text


def test_a_third_partys_name_does_not_import_another_third_party(publish: Publish) -> None:
    publish("acmeshim", GOOD.format(fields=ACME), acme="acmeshim_vendor:VENDOR")
    publish("brokenshim", "raise SystemError('imported')\n", broken="brokenshim_vendor:VENDOR")
    assert registry.resolve("acme").name == "acme" and "brokenshim_vendor" not in sys.modules


def test_an_installed_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = Vendor(name="acme", title="Acme", indexed=False, probe=Probe(home=("ACME_HOME",)))
    monkeypatch.delenv("ACME_HOME", raising=False)
    assert not registry.has_sdk(vendor)
    monkeypatch.setenv("ACME_HOME", "/opt/acme")
    assert registry.has_sdk(vendor)


def test_two_distributions_with_one_name(publish: Publish) -> None:
    publish("oneshim", GOOD.format(fields=ACME), acme="oneshim_vendor:VENDOR")
    publish("twoshim", GOOD.format(fields=ACME), acme="twoshim_vendor:VENDOR")
    for ask in (lambda: registry.resolve("acme"), registry.vendors):
        with pytest.raises(
            ConflictError, match=r"'acme' is claimed twice, by (oneshim and by twoshim|twoshim and by oneshim)"
        ):
            ask()
    assert registry.resolve("cpu").name == "cpu"


def test_a_third_party_may_not_take_a_built_in_name_or_alias(publish: Publish) -> None:
    publish("ownshim", GOOD.format(fields=ACME.replace("acme'", "ascend'", 1)), ascend="ownshim_vendor:VENDOR")
    with pytest.raises(ConflictError, match="'ascend' is claimed twice, by flagos-shim and by ownshim"):
        registry.resolve("ascend")


def test_nor_an_alias_of_one(publish: Publish) -> None:
    publish("aliasshim", GOOD.format(fields=ACME + ", aliases=('npu',)"), acme="aliasshim_vendor:VENDOR")
    assert registry.resolve("npu").name == "ascend"
    with pytest.raises(ConflictError, match="'npu' is claimed twice, by flagos-shim and by aliasshim"):
        registry.resolve("acme")


def test_one_distribution_may_not_claim_a_name_twice_either(publish: Publish) -> None:
    text = GOOD.format(fields=ACME + ", aliases=('x',)") + GOOD.format(
        fields=ACME.replace("acme'", "acme2'", 1) + ", aliases=('x',)"
    ).replace("VENDOR =", "SECOND =")
    publish("dupshim", text, acme="dupshim_vendor:VENDOR", acme2="dupshim_vendor:SECOND")
    with pytest.raises(ConflictError, match="'x' is claimed twice, by dupshim and by dupshim"):
        registry.vendors()


def test_a_distribution_that_is_on_the_path_twice_does_not_clash_with_itself(
    publish: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("acmeshim", GOOD.format(fields=ACME), acme="acmeshim_vendor:VENDOR")
    shutil.copytree(tmp_path / "acmeshim", tmp_path / "again")
    monkeypatch.syspath_prepend(str(tmp_path / "again"))
    assert registry.resolve("acme").name == "acme" and "acme" in registry.vendors()


def test_a_plugin_that_is_not_installed_says_what_to_install() -> None:
    vendor = Vendor(
        name="acme", title="Acme", package="acme_plugin_that_is_not_there", requirement="acme-torch",
        device_type="acme", namespace="torch.acme",
    )  # fmt: skip
    assert not registry.is_installed(vendor)
    with pytest.raises(BackendUnavailableError) as caught:
        registry.require(vendor)
    assert str(caught.value) == (
        f"The back end 'acme' needs the package acme_plugin_that_is_not_there, which is not installed in {sys.prefix}. "
        "Install it: pip install acme-torch. Run `flagos-diagnose --backend acme` for every step and its remedy."
    )


def test_a_vendor_without_a_plugin_is_always_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.is_installed(registry.resolve("cpu"))
    registry.require(registry.resolve("cpu"))
    vendor = Vendor(name="acme", title="Acme", package="acme_loaded", device_type="acme", namespace="torch.acme")
    monkeypatch.setitem(sys.modules, "acme_loaded", types.ModuleType("acme_loaded"))
    assert registry.is_installed(vendor)


def test_device_files(tmp_path: Path) -> None:
    vendor = Vendor(name="acme", title="Acme", indexed=False, probe=Probe(files=(f"{tmp_path}/acme[0-9]*",)))
    assert not registry.has_device_files(vendor)
    (tmp_path / "acme0").touch()
    assert registry.has_device_files(vendor)


def test_every_conflicting_module_has_a_remedy() -> None:
    found = registry.conflicts()
    assert "torch_npu.contrib.transfer_to_npu" in found and "torchada" in found
    assert all(remedy.startswith("remove `") for remedy in found.values())
