"""CUDA's variables become the vendor's, never against the user's own setting, and go back."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

import pytest

from flagos_shim._environment import Changes, carry_over, carry_visible_devices, split_options, visible_devices
from flagos_shim.vendor import Vendor

VENDOR = Vendor(
    name="acme", title="Acme", device_type="acme", namespace="torch.acme", visible_devices="ACME_VISIBLE",
    visible_ascending=True, environment={"CUDA_LAUNCH_BLOCKING": "ACME_BLOCKING"},
)  # fmt: skip
ANY_ORDER = Vendor(
    name="free", title="Free", device_type="free", namespace="torch.free", visible_devices="FREE_VISIBLE"
)
IDENTITY = Vendor(
    name="hip", title="HIP", device_type="cuda", namespace="torch.cuda", identity=True, visible_devices="HIP_VISIBLE",
    environment={"CUDA_LAUNCH_BLOCKING": "HIP_BLOCKING"},
)  # fmt: skip


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("CUDA_", "ACME_", "FREE_", "HIP_", "FLAGOS_")):
            monkeypatch.delenv(name)


def start(env: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, vendor: Vendor = VENDOR) -> Changes:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    changes = Changes()
    carry_over(vendor, changes)
    return changes


def ours() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(("ACME_", "FREE_", "HIP_", "FLAGOS_"))}


def test_what_is_set_for_cuda_is_carried_over_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = start({"CUDA_LAUNCH_BLOCKING": "1", "CUDA_VISIBLE_DEVICES": "1,3"}, monkeypatch)
    assert os.environ["ACME_BLOCKING"] == "1" and os.environ["ACME_VISIBLE"] == "1,3" and changes.cards == 2
    assert changes.carried == {"CUDA_LAUNCH_BLOCKING": "ACME_BLOCKING", "CUDA_VISIBLE_DEVICES": "ACME_VISIBLE"}
    changes.undo()
    assert ours() == {} and changes.carried == {}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1,3"


def test_the_users_own_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"CUDA_LAUNCH_BLOCKING": "1", "ACME_BLOCKING": "0", "CUDA_VISIBLE_DEVICES": "1", "ACME_VISIBLE": "0"}
    changes = start(env, monkeypatch)
    assert ours() == {"ACME_BLOCKING": "0", "ACME_VISIBLE": "0"} and changes.carried == {} and changes.cards is None
    changes.undo()
    assert ours() == {"ACME_BLOCKING": "0", "ACME_VISIBLE": "0"}


def test_no_card_at_all_is_a_number_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start({"CUDA_VISIBLE_DEVICES": ""}, monkeypatch).cards == 0


def test_nothing_set_nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start({}, monkeypatch).before == {} and ours() == {}


def test_an_identity_vendor_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    start({"CUDA_LAUNCH_BLOCKING": "1", "CUDA_VISIBLE_DEVICES": "0"}, monkeypatch, IDENTITY)
    assert ours() == {}


def test_cards_chosen_after_activation_count(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = start({"CUDA_VISIBLE_DEVICES": "0,1"}, monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    carry_visible_devices(VENDOR, changes)
    assert os.environ["ACME_VISIBLE"] == "1"
    monkeypatch.setenv("ACME_VISIBLE", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    carry_visible_devices(VENDOR, changes)
    assert os.environ["ACME_VISIBLE"] == "0"
    changes.undo()
    assert os.environ["ACME_VISIBLE"] == "0", "a variable that the user has set since is not ours to take back"


def test_a_child_takes_its_own_card_and_not_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    start({"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_LAUNCH_BLOCKING": "1"}, monkeypatch)
    # What a launcher does for each worker, in the environment that it has inherited from an active process:
    child = start({"CUDA_VISIBLE_DEVICES": "1", "CUDA_LAUNCH_BLOCKING": "0"}, monkeypatch)
    assert os.environ["ACME_VISIBLE"] == "1" and os.environ["ACME_BLOCKING"] == "0"
    child.undo()
    monkeypatch.setenv("ACME_VISIBLE", "0")
    start({"CUDA_VISIBLE_DEVICES": "1"}, monkeypatch)
    assert os.environ["ACME_VISIBLE"] == "0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"), ("1,0", "0,1"), (" 2 , 10,3 ", "2,3,10"), ("", "-1"), ("-1", "-1"), ("0,-1,1", "0"), ("0,,1", "0"),
    ],
)  # fmt: skip
def test_a_list_of_cards(text: str, expected: str) -> None:
    assert visible_devices(text, VENDOR) == expected


def test_the_order_is_kept_where_the_vendor_can(caplog: pytest.LogCaptureFixture) -> None:
    assert visible_devices("2,0", ANY_ORDER) == "2,0" and not caplog.records


def test_a_list_that_must_be_reordered_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "flagos_shim"):
        changes = start({"CUDA_VISIBLE_DEVICES": "2,0"}, monkeypatch)
        carry_visible_devices(VENDOR, changes)
    assert [record.getMessage() for record in caplog.records] == [
        "Acme takes cards in ascending order only: CUDA_VISIBLE_DEVICES=2,0 becomes ACME_VISIBLE=0,2."
    ]


def test_a_name_of_an_nvidia_card_is_no_ordinal(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "flagos_shim"):
        assert visible_devices("GPU-8932f937,1", VENDOR) == "-1"
    assert "'GPU-8932f937' is no ordinal of a Acme card" in caplog.text


@pytest.mark.parametrize(
    ("value", "left", "dropped"),
    [
        ("max_split_size_mb:128", "max_split_size_mb:128", 0),
        ("expandable_segments:True, max_split_size_mb:128", "expandable_segments:True,max_split_size_mb:128", 0),
        ("backend:cudaMallocAsync,expandable_segments:True", "expandable_segments:True", 1),
        ("roundup_power2_divisions:[256:1,512:2],max_split_size_mb:64", "max_split_size_mb:64", 1),
        ("backend:native", None, 1),
    ],
)
def test_allocator_options_that_the_vendor_knows(value, left, dropped):
    from flagos_shim.vendors.ascend import VENDOR

    kept, without = split_options(value, lambda option: option in VENDOR.allocator_options)
    assert kept == left and len(without) == dropped


def test_what_only_cudas_allocator_takes_is_taken_out_and_put_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from flagos_shim.vendors.ascend import VENDOR

    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    value = "backend:cudaMallocAsync,roundup_power2_divisions:[256:1,>:4],max_split_size_mb:64"
    with caplog.at_level(logging.WARNING, "flagos_shim"):
        changes = start({"PYTORCH_CUDA_ALLOC_CONF": value}, monkeypatch, VENDOR)
        carry_over(VENDOR, changes)
    dropped = ["backend:cudaMallocAsync", "roundup_power2_divisions:[256:1,>:4]"]
    assert changes.dropped == {"PYTORCH_CUDA_ALLOC_CONF": dropped}
    assert [record.getMessage() for record in caplog.records] == [
        f"Huawei Ascend NPU has no counterpart of {', '.join(dropped)} in PYTORCH_CUDA_ALLOC_CONF."
    ]
    # torch itself knows the second one, and may make use of it.
    assert os.environ["PYTORCH_CUDA_ALLOC_CONF"] == "roundup_power2_divisions:[256:1,>:4],max_split_size_mb:64"
    assert os.environ["PYTORCH_NPU_ALLOC_CONF"] == "max_split_size_mb:64"
    changes.undo()
    assert os.environ["PYTORCH_CUDA_ALLOC_CONF"] == value and "PYTORCH_NPU_ALLOC_CONF" not in os.environ


def test_the_common_variable_keeps_what_the_plugin_takes_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from flagos_shim.vendors.ascend import VENDOR

    changes = start({"PYTORCH_ALLOC_CONF": "backend:native,base_addr_aligned_kb:16"}, monkeypatch, VENDOR)
    assert os.environ["PYTORCH_ALLOC_CONF"] == "base_addr_aligned_kb:16" and changes.carried == {}
    changes.undo()
    changes = start({"PYTORCH_ALLOC_CONF": "backend:native"}, monkeypatch, VENDOR)
    assert "PYTORCH_ALLOC_CONF" not in os.environ
    changes.undo()
    assert os.environ["PYTORCH_ALLOC_CONF"] == "backend:native"
