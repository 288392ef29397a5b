"""Ordinary CUDA scripts, written after public reports of what broke on other hardware: each runs unmodified.

A script names only ``cuda``, says in its first line what must hold, prints ``OK`` last when it holds and fails
otherwise.  It is started by the launcher, as a user would.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPTS = sorted(Path(__file__).parent.joinpath("scripts").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_on_the_real_plugin(script, run_isolated):
    run = run_isolated(None, backend="ascend", flags=("-m", "flagos_shim", str(script)))
    assert run.ok().stdout.split()[-1] == "OK", run.stderr[-3000:]
