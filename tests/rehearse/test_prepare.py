"""Preparing a rehearsal: what it costs, what it refuses, and what it says."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from flagos_shim.rehearse import OPTIONS, RehearsalError, check, prepare
from flagos_shim.rehearse import ascend as ascend_module
from flagos_shim.rehearse.ascend import build

from .conftest import Run, child_environment


def test_nothing_is_done_unless_it_is_asked_for() -> None:
    before = list(sys.meta_path)
    prepare("no such vendor", {})
    assert sys.meta_path == before


def test_an_unknown_vendor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RehearsalError, match=r"FLAGOS_SHIM_REHEARSE='tpu'.*known: ascend"):
        prepare("tpu", {"FLAGOS_SHIM_REHEARSE": "tpu"})


def test_preparing_twice_is_preparing_once_and_imports_no_torch() -> None:
    code = """
import sys, os
from flagos_shim.rehearse import prepare
os.environ["FLAGOS_SHIM_REHEARSE"] = "ascend"
count = len(sys.meta_path)
prepare("ascend", os.environ); prepare("Ascend", os.environ)
assert len(sys.meta_path) == count, sys.meta_path  # the site hook of these tests has put it there already
assert not {"torch", "torch_npu", "re", "importlib.metadata", "ctypes"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-S", "-c", "import sitecustomize\n" + code], env=child_environment(), check=True)


def test_a_program_that_asks_for_the_plugin_starts_nothing(run: Run) -> None:
    code = """
        import importlib.util, os, sys
        for name in ("torch", "torch_npu"):
            assert importlib.util.find_spec(name).loader.get_source(name)
        assert "ASCEND_HOME_PATH" not in os.environ and "torch" not in sys.modules
        import torch_npu, torch
        assert torch.__loader__ is torch.__spec__.loader and type(torch.__loader__).__name__ == "SourceFileLoader"
        assert type(torch_npu.__spec__.loader).__name__ == "SourceFileLoader"
        print((torch.ones(2, device="npu") + 1).tolist())
    """
    assert run(code).stdout == "[2.0, 2.0]\n"


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("DEVICES", "two", "a whole number from 0 to 64"),
        ("DEVICES", "-1", "a whole number from 0 to 64"),
        ("DEVICES", "65", "a whole number from 0 to 64"),
        ("MEMORY_MB", "1.5", "a whole number from 4"),
        ("CHIP", "H100", "one of Ascend910A"),
        ("FAIL", "aclrtMalloc", "NAME:CODE"),
        ("FAIL", "aclrtMalloc:207001@0", "NAME:CODE"),
        ("UNSUPPORTED", "softmax;relu", "aten operator names"),
        ("HCCL_TIMEOUT", "soon", "a number of seconds above 0"),
    ],
)
def test_a_bad_option_gives_one_clear_error(variable: str, value: str, expected: str) -> None:
    name = f"FLAGOS_SHIM_REHEARSE_{variable}"
    with pytest.raises(RehearsalError) as caught:
        check("ascend", {**os.environ, name: value})
    assert str(caught.value).startswith(f"{name}={value!r} is not usable: expected ")
    assert expected in str(caught.value)


def test_the_table_of_options_agrees_with_itself() -> None:
    assert [option.flag for option in OPTIONS][:2] == ["--rehearse-devices", "--rehearse-memory-mb"]
    for option in OPTIONS:
        assert option.meaning and option.variable.startswith("FLAGOS_SHIM_REHEARSE_")
        assert not option.default or option.parse(option.default) == option.default


def test_what_is_missing_is_named_with_the_line_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    releases = {"torch": "2.13.0", "torch_npu": "2.13.0"}
    monkeypatch.setattr(ascend_module, "_release", releases.get)
    releases["torch_npu"] = "2.9.1"
    with pytest.raises(RehearsalError, match=r"torch_npu 2.9.1 does not go with torch 2.13.0.*\n.*torch-npu==2.13.0"):
        check("ascend")
    del releases["torch_npu"]
    with pytest.raises(RehearsalError, match=r"needs torch_npu.*\n    python -m pip install torch-npu==2.13.0"):
        check("ascend")
    del releases["torch"]
    with pytest.raises(RehearsalError, match=r"needs torch, which is not installed"):
        check("ascend")
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RehearsalError, match=r"only be rehearsed on Linux.*FLAGOS_DEVICE_BACKEND=cpu"):
        check("ascend")


def test_a_compiler_is_needed_only_until_the_runtime_is_built(tmp_path: pathlib.Path) -> None:
    bare = {"PATH": str(tmp_path), "FLAGOS_SHIM_CACHE": str(tmp_path / "empty")}
    with pytest.raises(
        RehearsalError, match=r"once, and neither cc, gcc nor clang was found. Install one:\n.*apt-get install"
    ):
        check("ascend", bare)
    with pytest.raises(RehearsalError, match=r"once, and CC=icc was not found. Install one:"):
        check("ascend", {**bare, "CC": "icc -O2"})
    built = {**os.environ, "FLAGOS_SHIM_CACHE": str(tmp_path / "built")}
    home = build.build(built)
    check("ascend", {"PATH": str(tmp_path), "FLAGOS_SHIM_CACHE": built["FLAGOS_SHIM_CACHE"]})
    # The home that a rehearsal sets for its children is not taken for a real CANN.
    check("ascend", {**built, "ASCEND_HOME_PATH": str(home)})


def test_the_demonstration_without_a_compiler_says_so_and_goes_on_with_the_cpu(tmp_path: pathlib.Path) -> None:
    # The training itself is left out; what chooses the back end is run.
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *train.py*) echo "runs: $*" ;; *) exec {sys.executable} "$@" ;; esac\n', "utf-8"
    )
    python.chmod(0o755)
    ready = tmp_path / "ready"
    ready.touch()
    root = pathlib.Path(__file__).resolve().parents[2]
    command = ["make", "--no-print-directory", "-C", str(root), "demo", f"PY={python}", f"READY={ready}"]
    bare = {k: v for k, v in child_environment().items() if k != "PYTHONPATH"}
    environment = {**bare, "CC": "no-such-compiler", "FLAGOS_SHIM_CACHE": str(tmp_path / "empty")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    first, *remedy = done.stderr.splitlines()
    assert first.startswith(
        "flagos_shim: error: Rehearsing Ascend needs a C compiler, once, and CC=no-such-compiler was "
    )
    assert [line.split()[0] for line in remedy] == ["apt-get", "dnf"]
    assert done.stdout.splitlines()[1] == "runs: -m flagos_shim --backend cpu examples/ocr/train.py --target"


def test_a_real_cann_is_not_shadowed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libascendcl.so").touch()
    real = {**os.environ, "ASCEND_TOOLKIT_HOME": str(tmp_path)}
    with pytest.raises(RehearsalError, match=r"real CANN installation.*FLAGOS_SHIM_REHEARSE_FORCE=1"):
        check("ascend", real)
    check("ascend", {**real, "FLAGOS_SHIM_REHEARSE_FORCE": "1"})
    check("ascend", {**os.environ, "ASCEND_HOME_PATH": str(tmp_path / "gone")})


def test_a_real_cann_that_only_the_loaders_path_knows_is_not_shadowed_either(tmp_path: pathlib.Path) -> None:
    (tmp_path / "libascendcl.so").touch()
    real = {**os.environ, "LD_LIBRARY_PATH": f"/no/such/folder:{tmp_path}/:"}
    with pytest.raises(RehearsalError, match=r"LD_LIBRARY_PATH names .* belongs to a real CANN.*_FORCE=1"):
        check("ascend", real)
    check("ascend", {**real, "FLAGOS_SHIM_REHEARSE_FORCE": "1"})
    check("ascend", {**os.environ, "LD_LIBRARY_PATH": "/no/such/folder:"})
    # What a rehearsal has built is no CANN, also where somebody has put it on the path.
    home = build.build({**os.environ, "FLAGOS_SHIM_CACHE": str(tmp_path / "built")})
    check("ascend", {**os.environ, "LD_LIBRARY_PATH": str(home / "lib64")})


def test_operators_of_a_real_cann_are_not_shadowed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RehearsalError, match=r"ASCEND_OPP_PATH=.* belongs to a real CANN.*_FORCE=1"):
        check("ascend", {**os.environ, "ASCEND_OPP_PATH": str(tmp_path)})
    check("ascend", {**os.environ, "ASCEND_OPP_PATH": str(tmp_path), "FLAGOS_SHIM_REHEARSE_FORCE": "1"})
    check("ascend", {**os.environ, "ASCEND_OPP_PATH": str(tmp_path / "gone")})
    home = build.build({**os.environ, "FLAGOS_SHIM_CACHE": str(tmp_path / "built")})
    check("ascend", {**os.environ, "ASCEND_OPP_PATH": str(home / "opp")})


def test_a_failed_build_shows_the_compiler_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    compiler = tmp_path / "broken-cc"
    compiler.write_text("#!/bin/sh\necho 'runtime.c: no such header' >&2\nexit 1\n")
    compiler.chmod(0o755)
    cache = tmp_path / "cache"
    with pytest.raises(RehearsalError, match=r"(?s)could not be compiled.*broken-cc.*no such header"):
        build.build({**os.environ, "CC": str(compiler), "FLAGOS_SHIM_CACHE": str(cache)})
    assert [file.name for file in (cache / "rehearse").iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RehearsalError, match=r"could not be written to .*FLAGOS_SHIM_CACHE"):
        build.build({**os.environ, "FLAGOS_SHIM_CACHE": str(tmp_path / "file")})


def test_processes_that_build_at_once_get_one_runtime(tmp_path: pathlib.Path) -> None:
    code = "from flagos_shim.rehearse.ascend import build; import os; print(build.build(os.environ))"
    environment = child_environment(FLAGOS_SHIM_CACHE=str(tmp_path))
    children = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    homes = {child.communicate(timeout=120)[0].strip() for child in children}
    assert [child.returncode for child in children] == [0, 0, 0] and len(homes) == 1
    home = pathlib.Path(homes.pop())
    assert build.is_ours(home) and sorted(f.name for f in home.parent.iterdir()) == [".lock", home.name]
