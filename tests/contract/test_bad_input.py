"""What a mistake prints, and its exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flagos_shim.vendors import BUILTIN

DIAGNOSE = "Run `flagos-diagnose --backend {}` for every step and its remedy."
UNAVAILABLE = "flagos_shim.failures.BackendUnavailableError: "
CONFLICT = "flagos_shim.failures.ConflictError: "
IMPORT = "import torch\nprint('imported')"


def launched(run_isolated: Any, *words: str, **options: Any) -> Any:
    return run_isolated(None, flags=["-m", "flagos_shim", *words], **{"backend": None, **options})


def fails(done: Any, text: str, code: int = 1) -> None:
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.last_error == text


def test_an_unknown_back_end(run_isolated: Any) -> None:
    done = run_isolated(IMPORT, backend="tpu")
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("Traceback") == 1
    text = done.last_error.partition("flagos_shim.failures.UnknownBackendError: ")[2]
    assert text.startswith("Unknown back end 'tpu'. Known: ascend (npu, huawei, cann), cpu, ")
    assert all(f" {name}" in text for name in BUILTIN)
    assert text.endswith(
        "Others come from packages that publish the entry point group 'flagos_shim.vendors'; is the one you want "
        "installed in this environment?"
    )
    for words, options in (["--backend", "tpu", "-c", IMPORT], {}), (["-c", IMPORT], {"backend": "tpu"}):
        done = launched(run_isolated, *words, **options)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"flagos_shim: error: {text}\n")


def test_a_back_end_without_its_plugin(run_isolated: Any) -> None:
    text = f"The back end 'mlu' needs the package torch_mlu, which is not installed in {sys.prefix}. "
    text += DIAGNOSE.format("mlu")
    fails(run_isolated(IMPORT, backend="MLU"), UNAVAILABLE + text)
    done = launched(run_isolated, "--backend", "cambricon", "-c", IMPORT)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"flagos_shim: error: {text}\n")


def test_what_can_be_installed_is_said(run_isolated: Any) -> None:
    code = """
import importlib.machinery
find = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = lambda name, *a: None if name == "torch_npu" else find(name, *a)
"""
    fails(
        run_isolated(code + IMPORT, rehearse=False),
        f"{UNAVAILABLE}The back end 'ascend' needs the package torch_npu, which is not installed in {sys.prefix}. "
        f"Install it: pip install torch-npu. {DIAGNOSE.format('ascend')}",
    )


def test_a_plugin_without_its_sdk(run_isolated: Any) -> None:
    done = run_isolated(IMPORT, rehearse=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.last_error.startswith(f"{UNAVAILABLE}The back end 'ascend': importing torch_npu failed: lib")
    assert done.last_error.endswith(
        " cannot open shared object file: No such file or directory. Is the vendor's SDK installed and its environment "
        f"set (libascendcl.so)? {DIAGNOSE.format('ascend')}"
    )
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in done.stderr, "torch's own advice does not help here"


def test_a_plugin_without_its_sdk_that_nobody_chose(run_isolated: Any) -> None:
    code = "import torch, flagos_shim; print(torch.device('cuda'), flagos_shim.status()['autoload_set_aside'])"
    done = run_isolated(code, backend="cpu")
    assert done.ok().stdout == "cpu True\n" and done.stderr == ""


@pytest.mark.parametrize(
    ("backend", "text"),
    [
        ("cuda", "it was built without it. Install a build of torch for this device."),
        ("xpu", "torch.xpu was imported, but finds no device on this machine."),
    ],
)
def test_a_back_end_of_torchs_own_without_a_device(run_isolated: Any, backend: str, text: str) -> None:
    done = run_isolated(IMPORT, backend=backend)
    assert done.returncode == 1 and done.stdout == ""
    assert done.last_error.startswith(f"{UNAVAILABLE}The back end {backend!r}: ")
    assert done.last_error.endswith(f"{text} {DIAGNOSE.format(backend)}")


def test_bad_settings(run_isolated: Any) -> None:
    fails(
        run_isolated(IMPORT, backend="cpu", env={"FLAGOS_LOG_LEVEL": "nonsense"}),
        "flagos_shim.failures.FlagosShimError: FLAGOS_LOG_LEVEL='nonsense' cannot be read: expected DEBUG, INFO, "
        "WARNING, ERROR or CRITICAL. Correct it or unset it.",
    )
    text = "FLAGOS_SHIM_REHEARSE='tpu' is not a vendor that can be rehearsed; known: ascend."
    fails(
        run_isolated(IMPORT, backend=None, env={"FLAGOS_SHIM_REHEARSE": "tpu"}),
        f"flagos_shim.rehearse.errors.RehearsalError: {text}",
    )
    done = launched(run_isolated, "--rehearse", "tpu", "-c", IMPORT)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"flagos_shim: error: {text}\n")
    done = launched(run_isolated, "--rehearse", "ascend", "--rehearse-devices", "many", "-c", IMPORT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "flagos_shim: error: FLAGOS_SHIM_REHEARSE_DEVICES='many' is not usable: expected a whole"
    )
    done = launched(run_isolated, "--backend")
    assert done.returncode == 2 and "argument --backend: expected one argument" in done.stderr


@pytest.mark.parametrize(
    ("before", "env", "text"),
    [
        (
            "import sys, types; sys.modules['torchada'] = types.ModuleType('torchada')\n",
            {},
            "torchada is active in this process and patches torch for the same purpose: remove `import torchada`.",
        ),
        (
            "import sys, types; sys.modules['torch_fl'] = types.ModuleType('torch_fl')\n",
            {},
            "torch_fl is active in this process and patches torch for the same purpose: remove `import torch_fl`: it "
            "is a device plugin of its own, and an alternative to this package.",
        ),
        (
            "",
            {"TORCH_TRANSFER_TO_NPU": "1"},
            "TORCH_TRANSFER_TO_NPU is set, and patches torch for the same purpose: unset it.",
        ),
    ],
    ids=["torchada", "torch_fl", "variable"],
)
def test_another_shim_is_active_already(run_isolated: Any, before: str, env: dict[str, str], text: str) -> None:
    fails(run_isolated(before + IMPORT, backend="cpu", env=env), CONFLICT + text)


def test_the_plugins_own_shim_is_active_already(run_isolated: Any) -> None:
    code = """
import os
os.environ.update(FLAGOS_SHIM_REHEARSE="ascend", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
import flagos_shim
from flagos_shim import rehearse
flagos_shim.deactivate()
rehearse.prepare("ascend", os.environ)
import torch, torch_npu
from torch_npu.contrib import transfer_to_npu
held = torch.zeros
for name in ("ascend", "cpu"):
    try: flagos_shim.activate(name)
    except flagos_shim.ConflictError as error: print(error)
assert torch.zeros is held and not flagos_shim.status()["active"]
"""
    line = (
        "torch_npu.contrib.transfer_to_npu is active in this process and patches torch for the same purpose: remove "
        "`from torch_npu.contrib import transfer_to_npu` and unset TORCH_TRANSFER_TO_NPU.\n"
    )
    assert run_isolated(code, backend=None).ok().stdout == line * 2


def publish(folder: Path, dist: str, text: str, **points: str) -> str:
    info = folder / dist / f"{dist}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[flagos_shim.vendors]", *lines, ""]))
    (folder / dist / f"{dist}_vendor.py").write_text(text)
    return str(folder / dist)


GOOD = """
from flagos_shim.vendor import Vendor
VENDOR = Vendor(name="acme", title="Acme", aliases=("ac",), namespace="flagos_shim.host", indexed=False)
"""


def test_vendors_of_third_parties(run_isolated: Any, tmp_path: Path) -> None:
    good = publish(tmp_path, "acmeshim", GOOD, acme="acmeshim_vendor:VENDOR")
    twin = publish(tmp_path, "twinshim", GOOD, acme="twinshim_vendor:VENDOR")
    newer = GOOD.replace("indexed=False", "indexed=False, from_the_future=1")
    broken = publish(tmp_path, "newshim", newer, acme="newshim_vendor:VENDOR")
    code = "import torch, flagos_shim; print(torch.device('cuda'), flagos_shim.status()['title'])"
    assert run_isolated(code, backend="AC", env={"PYTHONPATH": good}).ok().stdout == "cpu Acme\n"
    assert run_isolated(code, backend="cpu", env={"PYTHONPATH": f"{broken}:{twin}:{good}"}).ok().stdout == "cpu CPU\n"
    done = run_isolated(IMPORT, backend="acme", env={"PYTHONPATH": broken})
    assert done.returncode == 1 and done.last_error.startswith(
        "flagos_shim.failures.FlagosShimError: The vendor 'acme' published by newshim is too new: "
        "'newshim_vendor:VENDOR' was "
    )
    assert "'from_the_future'" in done.last_error and "Update flagos_shim" in done.last_error
    done = launched(run_isolated, "--backend", "acme", "-c", IMPORT, env={"PYTHONPATH": f"{good}:{twin}"})
    assert (done.returncode, done.stdout, done.stderr) == (
        2, "",
        "flagos_shim: error: The back end name 'acme' is claimed twice, by acmeshim and by twinshim. Uninstall the one "
        "you do not want.\n",
    )  # fmt: skip


BAD_DEVICES = """
import json, torch, flagos_shim
TEXTS = ["", "cuda:", "cuda:-1", "cuda:x", "CUDA", "gpu", "cuda:0:1", " cuda", "cuda ", "cuda:01", "cuda:0 ",
         "nonsense:0",
         "cuda:2147483648", "cuda:99999999999999999999", "cuda,cpu", "flagosx", "cuda:\\u0663", "cuda\\0", "flagos:x"]
x, m = torch.ones(1), torch.nn.Linear(1, 1)
CALLS = {
    "torch.device": torch.device, "type=": lambda t: torch.device(type=t), "with index": lambda t: torch.device(t, 0),
    "zeros": lambda t: torch.zeros(1, device=t), "randn": lambda t: torch.randn(1, device=t),
    "tensor": lambda t: torch.tensor([1.0], device=t), "like": lambda t: torch.ones_like(x, device=t), "to": x.to,
    "to device=": lambda t: x.to(device=t), "new_zeros": lambda t: x.new_zeros(1, device=t), "cuda": x.cuda,
    "module": m.to, "Linear": lambda t: torch.nn.Linear(1, 1, device=t), "Generator": torch.Generator,
    "pair": lambda t: torch.device("cuda:1", 0), "number": lambda t: torch.zeros(1, device=1.5),
    "list": lambda t: torch.zeros(1, device=[t]),
}
def outcomes():
    found = {}
    for name, call in CALLS.items():
        for text in TEXTS:
            try: call(text)
            except Exception as error: found[f"{name} {text!r}"] = f"{type(error).__name__}: {error}"
            else: found[f"{name} {text!r}"] = "accepted"
    return found
ours = outcomes()
flagos_shim.deactivate()
theirs = outcomes()
print(json.dumps([[key, ours[key], theirs[key]] for key in ours]))
"""


@pytest.mark.parametrize("backend", ["cpu", "ascend"])
def test_a_bad_device_is_refused_in_torchs_own_words(run_isolated: Any, backend: str) -> None:
    compared = run_isolated(BAD_DEVICES, backend=backend).json
    assert [entry for entry in compared if entry[1] != entry[2]] == []
    assert len(compared) > 300 and not [entry for entry in compared if entry[1] == "accepted"]


def test_an_ordinal_out_of_range_is_an_error_and_never_another_card(run_isolated: Any) -> None:
    code = """
import json, torch
n = torch.cuda.device_count()
found = []
for call in (lambda: torch.zeros(1, device=f"cuda:{n}"), lambda: torch.zeros(1).to(f"cuda:{n}"),
             lambda: torch.zeros(1).cuda(n),
             lambda: torch.nn.Linear(1, 1).to(torch.device("cuda", n)), lambda: torch.cuda.set_device(n),
             lambda: torch.cuda.get_device_properties(n)):
    try: found.append(str(call()))
    except (RuntimeError, AssertionError, ValueError) as error: found.append(None)
print(json.dumps(found))
"""
    assert run_isolated(code).json == [None] * 6


def test_the_exceptions_are_the_public_ones(run_isolated: Any) -> None:
    code = """
import flagos_shim, json
flagos_shim.deactivate()
found = []
for name in ("tpu", "mlu"):
    try: flagos_shim.activate(name)
    except flagos_shim.FlagosShimError as error: found.append([type(error).__name__, isinstance(error, RuntimeError)])
print(json.dumps(found))
"""
    done = run_isolated(code, backend=None, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert done.json == [["UnknownBackendError", True], ["BackendUnavailableError", True]]
    assert json.loads(done.stdout) == done.json
