"""The table of environment variables: how each is read, and what an unreadable one says."""

from __future__ import annotations

import pytest

from flagos_shim import FlagosShimError, _settings, registry
from flagos_shim._settings import ALIAS_CUDA, BACKEND, DISABLE_CUDA_SHIM, LOG_LEVEL, REHEARSE, SETTINGS


def test_unset_means_the_default() -> None:
    assert [setting.read({}) for setting in SETTINGS] == [setting.default for setting in SETTINGS]


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGOS_DEVICE_BACKEND", " Ascend ")
    assert BACKEND.read() == "Ascend"


@pytest.mark.parametrize("setting", [BACKEND, REHEARSE, LOG_LEVEL])
@pytest.mark.parametrize("text", ["", "  "])
def test_set_to_nothing_is_as_good_as_unset(setting: _settings.Setting, text: str) -> None:
    assert setting.read({setting.name: text}) is None


@pytest.mark.parametrize("text", ["0", "", "off", "OFF", "false", "False", "FALSE", " 0 "])
@pytest.mark.parametrize("setting", [ALIAS_CUDA, DISABLE_CUDA_SHIM])
def test_spellings_of_off(setting: _settings.Setting, text: str) -> None:
    assert setting.read({setting.name: text}) is False


@pytest.mark.parametrize("text", ["1", "on", "true", "True", "yes"])
@pytest.mark.parametrize("setting", [ALIAS_CUDA, DISABLE_CUDA_SHIM])
def test_everything_else_is_on(setting: _settings.Setting, text: str) -> None:
    assert setting.read({setting.name: text}) is True


@pytest.mark.parametrize(("text", "level"), [("debug", "DEBUG"), (" Info ", "INFO"), ("CRITICAL", "CRITICAL")])
def test_levels(text: str, level: str) -> None:
    assert LOG_LEVEL.read({"FLAGOS_LOG_LEVEL": text}) == level


def test_an_unreadable_value_names_the_variable_the_text_and_what_was_expected() -> None:
    with pytest.raises(FlagosShimError) as caught:
        LOG_LEVEL.read({"FLAGOS_LOG_LEVEL": "nonsense"})
    assert str(caught.value) == (
        "FLAGOS_LOG_LEVEL='nonsense' cannot be read: expected DEBUG, INFO, WARNING, ERROR or CRITICAL. "
        "Correct it or unset it."
    )


@pytest.mark.parametrize(("text", "size"), [("1", 1), (" 1073741824 ", 1 << 30), ("", None), (" ", None)])
def test_pool_sizes(text: str, size: int | None) -> None:
    setting = _settings.pool_size(registry.resolve("cambricon"))
    assert (setting.name, setting.read({}), setting.read({setting.name: text})) == ("FLAGOS_MLU_POOL_SIZE", None, size)


def test_a_vendors_alias_in_a_name_counts_too_and_the_name_itself_goes_first() -> None:
    ascend = registry.resolve("ascend")
    pool = _settings.pool_size(ascend)
    assert pool.read({"FLAGOS_NPU_POOL_SIZE": "7"}) == 7
    assert pool.read({"FLAGOS_NPU_POOL_SIZE": "7", "FLAGOS_ASCEND_POOL_SIZE": "8"}) == 8
    assert _settings.fused(ascend, "FUSED_LINEAR").read({"FLAGOS_CANN_FUSED_LINEAR": "1"}) is True
    with pytest.raises(FlagosShimError, match="FLAGOS_NPU_POOL_SIZE='1G' cannot be read"):
        pool.read({"FLAGOS_NPU_POOL_SIZE": "1G"})


@pytest.mark.parametrize("text", ["1G", "-1", "0", "many", "1.5", "１"])
def test_what_is_no_number_of_bytes(text: str) -> None:
    with pytest.raises(FlagosShimError, match=r"cannot be read: expected a number of bytes, e\.g\. 1073741824"):
        _settings.pool_size(registry.resolve("mlu")).read({"FLAGOS_MLU_POOL_SIZE": text})


@pytest.mark.parametrize("text", [str(2**63), str(2**64 + 1), "9" * 5000])
def test_more_bytes_than_torch_can_hold(text: str) -> None:
    setting = _settings.pool_size(registry.resolve("mlu"))
    with pytest.raises(
        FlagosShimError, match=r"FLAGOS_MLU_POOL_SIZE='\d+' cannot be read: .* 9223372036854775807 at most"
    ):
        setting.read({setting.name: text})
    assert setting.read({setting.name: str(2**63 - 1)}) == 2**63 - 1


def test_every_vendor_has_its_own() -> None:
    for vendor in registry.vendors().values():
        names = [setting.name for setting in _settings.of_vendor(vendor)]
        assert names == [f"FLAGOS_{vendor.name.upper()}_{kind}" for kind in ("POOL_SIZE", *vendor.fused)]
        assert all(setting.meaning.endswith(".") for setting in _settings.of_vendor(vendor))


def test_every_setting_is_described_and_named_as_agreed() -> None:
    # Of the names without FLAGOS_SHIM_, these are the FlagOS plugin's own and keep its meaning.
    shared = {"FLAGOS_DEVICE_BACKEND", "FLAGOS_LOG_LEVEL", "FLAGOS_ALIAS_CUDA", "FLAGOS_DISABLE_CUDA_SHIM"}
    shared.add("FLAGOS_LOG_FALLBACK")
    for setting in SETTINGS:
        assert setting.meaning.endswith(".")
        assert setting.name in shared or setting.name.startswith("FLAGOS_SHIM_")
