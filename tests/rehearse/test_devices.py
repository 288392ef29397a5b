"""The machine that is rehearsed: how many chips, which of them are seen, what they are."""

from __future__ import annotations

import json

import pytest

from .conftest import Run

COUNT = "import torch, torch_npu; print(torch.npu.device_count(), torch.npu.is_available())"


@pytest.mark.parametrize(
    ("visible", "count"),
    [
        *[(None, 4), ("", 0), ("-1", 0), ("0", 1), ("1,3", 2), ("0,1,2,3", 4)],
        *[("1,0", 0), ("1,1", 0), ("0,x", 1), ("0 ,1", 1), ("2,7", 1), ("x", 0)],
    ],
)
def test_visible_devices_are_read_as_cann_reads_them(run: Run, visible: str | None, count: int) -> None:
    variables = {} if visible is None else {"ASCEND_RT_VISIBLE_DEVICES": visible}
    out = run(COUNT, FLAGOS_SHIM_REHEARSE_DEVICES="4", **variables).stdout
    assert out.split() == [str(count), str(count > 0)]


def test_a_visible_device_is_the_chip_behind_it(run: Run) -> None:
    code = """
        import torch, torch_npu
        x = torch.ones(3, device="npu:1")
        print(x.device, (x + 1).sum().item(), torch.npu.get_device_properties(1).uuid)
    """
    out = run(code, FLAGOS_SHIM_REHEARSE_DEVICES="8", ASCEND_RT_VISIBLE_DEVICES="2,5").stdout
    assert out.split()[:2] == ["npu:1", "6.0"] and out.strip().endswith("05")


def test_properties_are_those_of_the_chip(run: Run) -> None:
    code = """
        import json, torch, torch_npu
        p = torch.npu.get_device_properties(0)
        torch.npu.set_device(0)
        x = torch.empty(50 << 20, dtype=torch.uint8, device="npu:1")
        free = [torch.npu.mem_get_info(i)[0] >> 20 for i in (0, 1)]
        print(json.dumps([p.name, p.total_memory >> 20, p.cube_core_num, p.vector_core_num, *free]))
    """
    out = run(code, FLAGOS_SHIM_REHEARSE_CHIP="Ascend910B3", FLAGOS_SHIM_REHEARSE_MEMORY_MB="256").stdout
    assert json.loads(out) == ["Ascend910B3", 256, 24, 48, 256, 204]


def test_an_ordinal_out_of_range_is_the_plugins_own_error(run: Run) -> None:
    code = """
        import torch, torch_npu
        for ask in (lambda: torch.npu.set_device(9), lambda: torch.ones(1, device="npu:9")):
            try:
                ask()
            except RuntimeError as error:
                print("107001" in str(error) or "device" in str(error))
        print(torch.ones(2, device="npu").sum().item())
    """
    assert run(code).stdout.split() == ["True", "True", "2.0"]


def test_options_that_cannot_be_used_stop_the_import_of_torch(run: Run) -> None:
    done = run("import torch", status=1, FLAGOS_SHIM_REHEARSE_DEVICES="many")
    assert "RehearsalError: FLAGOS_SHIM_REHEARSE_DEVICES='many' is not usable" in done.stderr.splitlines()[-1]


def test_every_chip_that_can_be_named_starts_and_multiplies(run: Run) -> None:
    from flagos_shim.rehearse.options import CHIPS

    assert run("chips.py", *CHIPS).stdout.split("\n")[:-1] == list(CHIPS)
