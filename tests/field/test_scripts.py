"""Ordinary CUDA scripts, written after public reports of what broke on other hardware: each runs unmodified.

A script names only ``cuda``, says in its first line what must hold, prints ``OK`` last when it holds and fails
otherwise.  It is started by the launcher, as a user would: on the real torch_npu, and on the pretend torch_mlu and
torch_musa, whose gaps and quirks are others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPTS = {path.stem: path for path in sorted(Path(__file__).parent.joinpath("scripts").glob("*.py"))}

# Musa differs from mlu in names, texts and variables; these scripts meet them.
ON_MUSA = (
    *("availability_gate", "autocast_state", "device_type_gate", "legacy_tensor_constructors", "memory_statistics"),
    *("nccl_process_group", "nvtx_is_harmless", "oom_is_caught", "rng_state_resume", "saved_file_is_portable"),
    *("streams_and_events", "submodule_imports", "wrong_ordinal"),
)


def _run(backend, name, run_isolated):
    run = run_isolated(None, backend=backend, flags=("-m", "flagos_shim", str(SCRIPTS[name])))
    assert run.ok().stdout.split()[-1] == "OK", run.stderr[-3000:]


@pytest.mark.parametrize("name", SCRIPTS)
def test_ascend(name, run_isolated):
    _run("ascend", name, run_isolated)


@pytest.mark.parametrize("name", SCRIPTS)
def test_mlu(name, run_isolated):
    _run("mlu", name, run_isolated)


@pytest.mark.parametrize("name", ON_MUSA)
def test_musa(name, run_isolated):
    _run("musa", name, run_isolated)
