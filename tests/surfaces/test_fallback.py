"""Operators that the plugin computes on the CPU: logged, counted, and an error in strict mode."""

from __future__ import annotations

import pytest

OPERATOR = """
import logging, warnings, torch, flagos_shim
warnings.simplefilter("ignore" if {ignored} else "default")
x = torch.ones(3, device="cuda")
torch.igamma(x, x), torch.igamma(x, x)
print(flagos_shim.status()["fallbacks"])
"""


@pytest.mark.parametrize(("backend", "lacks"), [("ascend", {}), ("mlu", {"PRETEND_UNSUPPORTED": "igamma"})])
def test_strict_mode_makes_it_an_error(backend, lacks, run_isolated):
    strict = run_isolated(OPERATOR.format(ignored=True), backend=backend, env={**lacks, "FLAGOS_SHIM_STRICT": "1"})
    assert strict.returncode == 1 and "NotImplementedError" in strict.stderr and "igamma" in strict.stderr


def test_a_warning_that_reaches_python_is_logged_and_counted(run_isolated):
    env = {"FLAGOS_LOG_LEVEL": "DEBUG", "PRETEND_UNSUPPORTED": "igamma"}
    run = run_isolated(OPERATOR.format(ignored=False), backend="mlu", env=env).ok()
    assert "Falling back to CPU for aten::igamma on mlu:0" in run.stderr, run.stderr
    assert run.stdout.strip() == "{'aten::igamma': 1}" and "will fall back" in run.stderr


@pytest.mark.parametrize(("value", "shown"), [("1", 1), ("0", 0), (None, 0)])
def test_fallbacks_are_shown_without_a_level_where_torch_fls_switch_asks_for_it(run_isolated, value, shown):
    env = {"FLAGOS_LOG_FALLBACK": value, "PRETEND_UNSUPPORTED": "igamma"}
    run = run_isolated(OPERATOR.format(ignored=False), backend="mlu", env=env).ok()
    assert run.stderr.count("Falling back to CPU for aten::igamma on mlu:0") == shown
    assert run.stdout.strip() == "{'aten::igamma': 1}"


def test_torch_npu_says_it_on_stderr_itself(run_isolated):
    run = run_isolated(OPERATOR.format(ignored=True), backend="ascend").ok()
    assert "CAUTION: The operator 'aten::igamma.out' is not currently supported on the NPU backend" in run.stderr
