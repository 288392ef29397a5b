"""A vendor of under 80 lines in one file, published by another distribution, without a change in this package."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from flagos_shim import registry
from flagos_shim.check_vendor import check_data

from ..conftest import PRETEND

HERE = Path(__file__).parent
ACME = HERE / "acme"
SCRIPTS = HERE.parent / "field" / "scripts"
GUIDE = HERE.parents[1] / "docs" / "write-a-vendor.md"

# What a program does with a device: moves, seeds, precision, memory, errors, files, streams, processes.
FIELD = (
    *("device_type_gate", "tensor_method_surface", "rng_state_resume", "grad_scaler", "memory_statistics"),
    *(
        "pin_memory",
        "loader_workers",
        "seeding",
        "oom_is_caught",
        "wrong_ordinal",
        "saved_file_is_portable",
        "streams_and_events",
        "nccl_process_group",
    ),
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The environment with the distribution in it, as pip would leave it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ACME / "acme_flagos.py", folder)
    info = folder / "acme_flagos-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-flagos\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[flagos_shim.vendors]\nacme = acme_flagos:VENDOR\n")
    return {"PYTHONPATH": os.pathsep.join(map(str, (folder, ACME, PRETEND)))}


def test_it_is_one_file_of_under_80_lines():
    text = (ACME / "acme_flagos.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 80 and "torch" not in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)


def test_it_passes_check_vendor(installed, run_isolated):
    run = run_isolated(
        None, backend=None, env=installed, flags=("-m", "flagos_shim.check_vendor"), args=("acme_flagos:VENDOR",)
    ).ok()
    lines = run.stdout.splitlines()
    assert all(line.startswith("[OK] ") for line in lines) and lines[-1] == "[OK] undone", run.stdout
    for part in ("its data is consistent", "a tensor on acme:0", "out of memory is torch.cuda.Out", "collectives accl"):
        assert any(part in line for line in lines), part


# What only the device can tell: what of the vendor's file is changed -> the one line that says so.
WRONG = {
    ('"AcmeGraph"', '"NoGraph"'): "renames['CUDAGraph'] is 'NoGraph': torch.acme has no NoGraph; expected one of its",
    ('{"CUDAGraph":', '{"NoGraph":'): "renames['NoGraph']: torch.cuda has no NoGraph; expected one of its names",
    ('collective="accl"', 'collective="nccl2"'): "collective is 'nccl2': torch.distributed does not know it; expected",
    ('device_type="acme"', 'device_type="acne"'): "; expected the back end to start and compute: see device_type,",
    ("acmeMalloc: no room", "other text"): "no rule of `errors` recognises RuntimeError: acmeMalloc: no room for",
}
ADDED = {
    'absent={"NoName": "use another one"},': "absent['NoName']: torch.cuda has no NoName; expected one of its names",
    'process_group="torch_acme:No",': "process_group is 'torch_acme:No': no class there; expected the plugin's",
    'before_load="torch_acme:no",': "before_load is 'torch_acme:no': no function there; expected the plugin's",
    'toolkit="acmekit",': "toolkit is 'acmekit': torch.version has no such name; expected that of",
    'compile_backend="nobody",': "compile_backend is 'nobody': torch.compile knows ",
}
COMPATIBLE = {"PRETEND_OLD_OOM": "1"}  # the wording that the rule of the vendor's file is for


def checked(run_isolated, env, where):
    run = run_isolated(None, backend=None, env=env, flags=("-m", "flagos_shim.check_vendor"), args=(where,))
    return run.returncode, [line for line in run.stdout.splitlines() if line.startswith("[FAIL]")], run.stderr


@pytest.mark.parametrize("change", [*WRONG, *ADDED], ids=str)
def test_a_promise_that_does_not_hold_is_one_line(installed, run_isolated, tmp_path, change):
    text = (ACME / "acme_flagos.py").read_text(encoding="utf-8")
    old, new = change if isinstance(change, tuple) else ("VENDOR = Vendor(\n", f"VENDOR = Vendor(\n    {change}\n")
    assert old in text
    (tmp_path / "wrong_acme.py").write_text(text.replace(old, new), encoding="utf-8")
    env = {**installed, **COMPATIBLE, "PYTHONPATH": os.pathsep.join((str(tmp_path), installed["PYTHONPATH"]))}
    code, (line,), _ = checked(run_isolated, env, "wrong_acme:VENDOR")
    assert code == 1 and {**WRONG, **ADDED}[change] in line, line


def test_the_built_in_vendors_that_can_start_pass_too(run_isolated):
    for name in ("cpu", "musa"):
        where = f"flagos_shim.vendors.{name}:VENDOR"
        code, failed, stderr = checked(run_isolated, {"PYTHONPATH": str(PRETEND)}, where)
        assert (code, failed) == (0, []), (name, failed, stderr)


INSIDE = """
import sys, torch
from flagos_shim import registry
registry.has_device_files = lambda vendor: vendor.name == "mlu"
import flagos_shim
flagos_shim.activate("auto")
assert str(torch.ones(1, device="cuda").device) == "mlu:0" and "acme_torch" not in sys.modules
"""


def test_a_vendor_inside_its_plugins_package_is_refused_and_harms_nobody(run_isolated, tmp_path):
    shutil.copytree(ACME / "torch_acme", tmp_path / "acme_torch")
    text = (ACME / "acme_flagos.py").read_text(encoding="utf-8").replace("torch_acme", "acme_torch")
    (tmp_path / "acme_torch" / "flagos.py").write_text(text, encoding="utf-8")
    info = tmp_path / "acme_torch-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-torch\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[flagos_shim.vendors]\nacme = acme_torch.flagos:VENDOR\n")
    paths = os.pathsep.join(map(str, (tmp_path, PRETEND)))
    env = {"PYTHONPATH": paths, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    code, (line,), _ = checked(run_isolated, env, "acme_torch.flagos:VENDOR")
    assert code == 2 and "Move the object into a module of its own beside the plugin's package" in line
    detected = run_isolated("from flagos_shim import _startup; _startup.withdraw()\n" + INSIDE, backend=None, env=env)
    assert "Move the object into a module of its own" in detected.ok().stderr
    chosen = run_isolated("import torch", backend="acme", env=env)
    assert chosen.returncode == 1 and "Move the object into a module of its own" in chosen.last_error


def test_field_scripts_run_on_it(installed, run_isolated):
    failed = {}
    for name in FIELD:
        run = run_isolated(
            None, backend="acme", env=installed, flags=("-m", "flagos_shim", str(SCRIPTS / f"{name}.py"))
        )
        if run.returncode or run.stdout.split()[-1:] != ["OK"]:
            failed[name] = run.stderr[-1500:]
    assert failed == {}


def test_every_name_of_torch_cuda_is_used_on_it(installed, run_isolated):
    found = run_isolated(HERE / "inside" / "cuda_names.py", backend="acme", env=installed).json
    unknown = {name: problem for name, problem in found["problems"].items() if "is not known" not in problem}
    unknown.pop("torch.cuda.use_mem_pool")  # there is no pool to use it with
    sparse = [name for name in unknown if name.startswith("torch.cuda.sparse.")]
    assert [name for name in unknown if name not in sparse] == [], unknown
    assert found["cuda_only"] == {} and "0 lost" in found["table"] and "(`acme`)" in found["table"]


SWITCHED_ON = """
import io, torch
assert str(torch.ones(1, device="cuda").device) == "acme:0" and torch.flagos_info()["backend"] == "acme"
assert torch.cuda.memory_reserved() >= 50_000_000, "FLAGOS_ACME_POOL_SIZE"
file = io.BytesIO()
import flagos_shim
flagos_shim.deactivate()
torch.save(torch.ones(2, device="acme:1"), file)      # as the plugin writes it
flagos_shim.activate()
for where, wanted in ((None, "acme:1"), ("cuda", "acme:0"), ("cpu", "cpu")):
    file.seek(0)
    assert str(torch.load(file, map_location=where).device) == wanted, where
try:
    torch.ones(1).flagos(backend="mlu")
except RuntimeError as error:
    assert "this process runs on 'acme', 'mlu' was asked for" in str(error)
else:
    raise AssertionError
"""


def test_the_variable_is_all_it_takes(installed, run_isolated):
    run_isolated(SWITCHED_ON, backend="Acme", env={**installed, "FLAGOS_ACME_POOL_SIZE": "50000000"}).ok()


def test_the_template_of_the_guide_is_a_valid_vendor(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "template_of_the_guide.py").write_text(blocks[0], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    vendor = registry.load("template_of_the_guide:VENDOR")
    assert vendor.name == "acme" and list(check_data(vendor)) == []
    assert len(blocks) == 1 and len(blocks[0].splitlines()) < 80
    (where,) = re.findall(r"check_vendor (\S+):VENDOR", GUIDE.read_text())
    assert vendor.package is not None and not f"{where}.".startswith(f"{vendor.package}."), "it would start the plugin"
    (point,) = re.findall(r'```toml\n\[project.entry-points."([\w.]+)"\]\n(\w+) = "[\w.:]+"\n```', GUIDE.read_text())
    assert point == (registry.ENTRY_POINT_GROUP, vendor.name)
