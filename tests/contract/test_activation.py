"""Switching on and off: checks of one process stand in inside/activation.py; here, what needs its own interpreter."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "inside" / "activation.py"
BACKENDS = ("cpu", "ascend")
PLAIN = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def checks(script: Path) -> list[str]:
    """The names of a script's checks, without running it."""
    body = ast.parse(script.read_text()).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


@pytest.fixture(scope="module", params=BACKENDS)
def outcome(request: pytest.FixtureRequest, run_isolated: Any) -> Any:
    """What became of each check in one child of a back end."""
    return run_isolated(SCRIPT, backend=None, args=[request.param])


@pytest.mark.parametrize("check", checks(SCRIPT))
def test_in_one_process(outcome: Any, check: str) -> None:
    assert outcome.json[check] is None, outcome.json[check]


def test_every_check_has_run(outcome: Any) -> None:
    assert list(outcome.json) == checks(SCRIPT)


def test_waiting_for_torch_can_be_asked_and_called_off(run_isolated: Any) -> None:
    code = """
import sys, flagos_shim
assert flagos_shim.status()["waiting"] and not flagos_shim.status()["active"]
assert "torch" not in sys.modules
flagos_shim.deactivate()
status = flagos_shim.status()
assert not status["waiting"] and not status["active"]
assert not [f for f in sys.meta_path if type(f).__module__ == "flagos_shim._importhook"]
import torch
assert str(torch.device("cuda")) == "cuda"
"""
    for backend in (None, "cpu"):
        run_isolated(code, backend=backend, env=PLAIN).ok()


def test_what_is_asked_for_in_the_program_counts_before_the_environment(run_isolated: Any) -> None:
    code = """
import sys, flagos_shim
flagos_shim.activate("cpu")
import torch
status = flagos_shim.status()
assert str(torch.device("cuda")) == "cpu" and status["backend"] == "cpu" and status["how"] == "chosen"
assert status["autoload_set_aside"] and not status["waiting"]
flagos_shim.deactivate()
with flagos_shim.activated("cpu"):
    assert str(torch.device("cuda")) == "cpu"
assert str(torch.device("cuda")) == "cuda"
"""
    done = run_isolated(code, backend="ascend", rehearse=False)
    assert done.ok().stderr == ""


def test_detection(run_isolated: Any) -> None:
    code = """
import flagos_shim, torch
status = flagos_shim.status()
print(status["backend"], status["how"])
"""
    cpu = run_isolated(code, backend=None)
    assert cpu.ok().stdout == "cpu detected\n" and cpu.stderr == "`cuda` means cpu (CPU), detected.\n"
    ascend = run_isolated(code, backend=None, env={"FLAGOS_SHIM_REHEARSE": "Ascend"})
    assert ascend.ok().stdout == "ascend detected\n" and "flagos" not in ascend.stderr
    auto = run_isolated(code, backend="AUTO")
    assert auto.ok().stdout == "cpu detected\n"


def test_the_log_is_on_stderr_where_the_program_has_set_up_none(run_isolated: Any) -> None:
    code = "import torch"
    assert run_isolated(code, backend="cpu", env={"FLAGOS_LOG_LEVEL": "info"}).ok().stderr == (
        "flagos_shim INFO: `cuda` means cpu (CPU), chosen.\n"
    )
    code = "import logging; logging.basicConfig(format='mine %(message)s', level=logging.DEBUG)\nimport torch"
    stderr = run_isolated(code, backend="cpu", env={"FLAGOS_LOG_LEVEL": "info"}).ok().stderr
    assert stderr.splitlines() == ["mine `cuda` means cpu (CPU), chosen."]


def test_threads_that_import_torch_and_switch_on_at_once(run_isolated: Any) -> None:
    code = """
import faulthandler, sys, threading
faulthandler.dump_traceback_later(100, exit=True)
errors = []
def import_torch():
    import torch
    assert str(torch.device("cuda")) == "cpu"
def switch_on():
    import flagos_shim
    flagos_shim.activate("cpu")
    import torch
    assert str(torch.device("cuda")) == "cpu"
def run(work):
    try: work()
    except BaseException as error: errors.append(error)
threads = [threading.Thread(target=run, args=(w,)) for w in [import_torch, switch_on] * 4]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
import torch, flagos_shim
assert not hasattr(torch.zeros.__wrapped__, "__wrapped__")
flagos_shim.deactivate()
assert str(torch.device("cuda")) == "cuda"
"""
    run_isolated(code, backend="cpu").ok()
    run_isolated("import flagos_shim\n" + code, backend=None).ok()


def test_a_thread_switches_on_while_another_is_importing_torch(run_isolated: Any) -> None:
    code = """
import faulthandler, sys, threading, time
faulthandler.dump_traceback_later(100, exit=True)
thread = threading.Thread(target=lambda: __import__("torch"))
thread.start()
while "torch._C" not in sys.modules: time.sleep(0.001)
import flagos_shim
flagos_shim.activate("cpu")
import torch
assert flagos_shim.status()["active"] and str(torch.device("cuda")) == "cpu"
thread.join()
"""
    for backend in ("cpu", None):
        run_isolated(code, backend=backend, env=PLAIN).ok()


def test_a_failed_start_can_be_followed_by_another(run_isolated: Any) -> None:
    code = """
import flagos_shim, os
flagos_shim.deactivate()
import torch
before = dict(os.environ)
try: flagos_shim.activate("ascend")
except flagos_shim.BackendUnavailableError: pass
assert dict(os.environ) == before and not flagos_shim.status()["active"]
assert type(torch.zeros).__name__ == "builtin_function_or_method"
flagos_shim.activate("cpu")
assert str(torch.device("cuda")) == "cpu"
"""
    run_isolated(code, backend=None, env=PLAIN).ok()


def test_an_import_of_torch_that_failed_is_no_way_around(run_isolated: Any) -> None:
    code = """
import os, sys
for _ in range(2):
    try: import torch
    except Exception as error: print(type(error).__name__, end=" ")
    else: print("imported", end=" ")
    assert os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") is None
"""
    done = run_isolated(code, backend="nonsense").ok()
    assert done.stdout.split()[0] == "UnknownBackendError" and "imported" not in done.stdout


def test_a_vendor_where_torch_cuda_is_the_device_gets_the_name_flagos_and_nothing_else(run_isolated: Any) -> None:
    """With a stand-in for an NVIDIA machine: this build of torch can name CUDA devices, but has none."""
    code = """
import os, sys
sys.path.insert(0, os.environ["INSIDE"])
from _snapshot import Snapshot
import flagos_shim
flagos_shim.deactivate()
import torch
from flagos_shim import _environment, registry
from flagos_shim._context import Context
from flagos_shim._patching import Ledger, iterate
from flagos_shim.patches import IDENTITY_SURFACES
before = Snapshot()
vendor = registry.resolve("cuda")
ctx = Context(vendor, ("flagos",), torch.cuda, _environment.Changes())
ledger = Ledger(ctx)
for surface in iterate(IDENTITY_SURFACES):
    ledger.apply(surface)
assert str(torch.device("flagos")) == "cuda" and str(torch.device("flagos:1")) == "cuda:1"
assert torch.device("flagos", 1) == torch.device("cuda:1") and torch.device("cuda").type == "cuda"
assert str(torch.device(type="flagos", index=2)) == "cuda:2" and torch.device("cuda", 1).index == 1
assert type(torch.device("cuda").type) is str and torch.ones(1).device.type == "cpu"
seen = []
for text in ("flagos:1", "cuda:1"):
    for call in (lambda: torch.zeros(1, device=text), lambda: torch.ones(1).to(text), lambda: torch.ones(1).cuda(text),
                 lambda: torch.nn.Linear(1, 1).to(text), lambda: torch.ones(1).new_zeros(1, device=text)):
        try: call()
        except Exception as error: seen.append((type(error), str(error)))
assert len(seen) == 10 and seen[:5] == seen[5:] and "CUDA" in seen[0][1], seen
# Nothing of torch.cuda, nor of what decides about availability, is touched.
touched = [e.target for e in ledger.entries if e.target.startswith("torch.cuda") or "is_available" in e.target]
assert not touched, touched
ctx.close()
assert ledger.undo() == []
assert before.differences(Snapshot()) == []
"""
    run_isolated(code, backend=None, env={**PLAIN, "INSIDE": str(SCRIPT.parent)}).ok()


@pytest.mark.parametrize("text", ["0", "off", "False"])
def test_the_name_cuda_can_be_left_to_fail(run_isolated: Any, text: str) -> None:
    code = """
import torch
assert str(torch.device("cuda")) == "cuda" and str(torch.device("flagos:1")) == "npu:1"
assert torch.zeros(1, device="flagos").device.type == "npu" and torch.ones(1).to("flagos:1").device.index == 1
try: torch.zeros(1, device="cuda")
except (AssertionError, RuntimeError) as error: assert "CUDA" in str(error), error
else: raise SystemExit("cuda did not fail")
"""
    run_isolated(code, env={"FLAGOS_ALIAS_CUDA": text}).ok()


@pytest.mark.parametrize("text", ["1", "true"])
def test_the_module_torch_cuda_can_be_left_as_it_is(run_isolated: Any, text: str) -> None:
    code = """
import torch
assert torch.zeros(1, device="cuda").device.type == "npu" and torch.ones(1).cuda().device.type == "npu"
assert not torch.cuda.is_available() and torch.cuda.is_available.__code__.co_filename.endswith("torch/cuda/__init__.py")
import flagos_shim
assert not [p["target"] for p in flagos_shim.status()["patches"] if p["target"].startswith("torch.cuda:")]
assert torch.get_device_module() is torch.npu and torch.flagos_info()["device_count"] == 2
assert torch.flagos.is_available() and torch.flagos.device_count() == 2 and torch.flagos.Stream is torch.npu.Stream
"""
    run_isolated(code, env={"FLAGOS_DISABLE_CUDA_SHIM": text}).ok()
