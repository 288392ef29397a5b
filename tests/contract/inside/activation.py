"""Switching on and off in one process: idempotent, exclusive, safe between threads, and undone when it fails."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from typing import Any

import _checks
from _snapshot import Snapshot

flagos_shim = _checks.pristine()

import torch  # noqa: E402

from flagos_shim import _activation, _device_type  # noqa: E402
from flagos_shim._patching import Surface, iterate  # noqa: E402
from flagos_shim.patches import SURFACES  # noqa: E402

BACKEND = _checks.BACKEND
ALIAS = {"ascend": "NPU", "cpu": " Cpu "}[BACKEND]
OTHER = {"ascend": "cpu", "cpu": "mlu"}[BACKEND]
KIND = {"ascend": "npu", "cpu": "cpu"}[BACKEND]
LOG = logging.getLogger("flagos_shim")


def world() -> dict[str, Any]:
    """What else a process has that activation could have changed."""
    return {
        "environ": dict(os.environ), "filters": list(warnings.filters), "meta_path": list(sys.meta_path),
        "path": list(sys.path), "root": (logging.getLogger().level, list(logging.getLogger().handlers)),
        "log": (LOG.level, list(LOG.handlers), LOG.propagate), "hooks": (sys.excepthook, threading.excepthook),
        "showwarning": warnings.showwarning, "disabled": logging.root.manager.disable,
    }  # fmt: skip


# One round first: it imports the package's own modules, and lazy ones of torch's.
flagos_shim.activate(BACKEND)
flagos_shim.deactivate()
PRISTINE, WORLD = Snapshot(), world()


def assert_untouched() -> None:
    assert not flagos_shim.status()["active"]
    assert PRISTINE.differences(Snapshot()) == []
    now = world()
    assert now == WORLD, {name: (WORLD[name], now[name]) for name in WORLD if WORLD[name] != now[name]}


def refused(error: type[BaseException], text: str, backend: str | None) -> None:
    try:
        flagos_shim.activate(backend)
    except error as caught:
        assert text in str(caught), caught
    else:
        raise AssertionError(f"{backend} was not refused")


def check_off_is_off() -> None:
    assert_untouched()
    assert flagos_shim.deactivate() == []
    status = flagos_shim.status()
    assert status == {
        "active": False, "waiting": False, "autoload_set_aside": False, "adapter_version": flagos_shim.__version__,
    }  # fmt: skip


def check_twice_is_once() -> None:
    flagos_shim.activate(BACKEND)
    first = _activation.STATE.current
    for name in (BACKEND, ALIAS, None, "auto"):
        flagos_shim.activate(name)
    assert _activation.STATE.current is first
    assert torch.zeros.__wrapped__ is PRISTINE.names["torch"]["zeros"]
    assert torch.device("cuda").type == KIND
    flagos_shim.deactivate()
    assert_untouched()


def check_one_back_end_a_process() -> None:
    flagos_shim.activate(BACKEND)
    before = _activation.STATE.current
    refused(flagos_shim.ConflictError, f"The back end {BACKEND!r} is active, {OTHER!r} was asked for", OTHER)
    refused(flagos_shim.UnknownBackendError, "Unknown back end 'nonsense'", "nonsense")
    assert _activation.STATE.current is before and torch.device("cuda").type == KIND
    flagos_shim.deactivate()
    assert_untouched()


def check_a_block() -> None:
    with flagos_shim.activated(BACKEND):
        assert torch.device("cuda").type == KIND
        with flagos_shim.activated(ALIAS):
            assert flagos_shim.status()["active"]
        assert torch.device("cuda").type == KIND, "the inner block is not the one that switched on"
    assert_untouched()
    try:
        with flagos_shim.activated(BACKEND):
            raise LookupError("from the block")
    except LookupError:
        assert_untouched()
    flagos_shim.activate(BACKEND)
    with flagos_shim.activated(BACKEND):
        pass
    assert flagos_shim.status()["active"]
    flagos_shim.deactivate()


def check_status_while_active() -> None:
    with flagos_shim.activated(BACKEND):
        status = flagos_shim.status()
        assert (status["active"], status["backend"], status["how"]) == (True, BACKEND, "chosen")
        assert status["device_type"] == KIND and status["failures"] == {}
        assert (status["plugin_version"] is None) == (status["plugin"] is None)
        assert status["torch_device"].startswith("same type")
        for patch in status["patches"]:
            assert set(patch) == {"target", "surface", "why", "state"} and patch["state"] == "active", patch
            assert patch["why"] and patch["target"].count(":") == 1, patch
        import json

        json.dumps(status)


def check_children_are_told_and_the_environment_is_put_back() -> None:
    assert "FLAGOS_DEVICE_BACKEND" not in os.environ
    with flagos_shim.activated(BACKEND):
        assert os.environ["FLAGOS_DEVICE_BACKEND"] == BACKEND
    os.environ["FLAGOS_DEVICE_BACKEND"] = "something"
    with flagos_shim.activated(BACKEND):
        assert os.environ["FLAGOS_DEVICE_BACKEND"] == BACKEND
    assert os.environ.pop("FLAGOS_DEVICE_BACKEND") == "something"
    assert_untouched()


def check_the_log_level_is_in_force_while_active() -> None:
    os.environ["FLAGOS_LOG_LEVEL"] = "debug"
    with flagos_shim.activated(BACKEND):
        assert LOG.level == logging.DEBUG
        assert logging.getLogger().level == logging.WARNING and not logging.getLogger().handlers
    del os.environ["FLAGOS_LOG_LEVEL"]
    assert_untouched()


def check_a_failing_surface_leaves_nothing() -> None:
    for surface in iterate(SURFACES):
        if surface.after is not None:
            continue
        extra = Surface("extra")
        extra.wrap("torch:a_name_that_is_not_there")(lambda ctx, original: original)
        surface.patches.extend(extra.patches)
        try:
            refused(flagos_shim.PatchError, "torch:a_name_that_is_not_there is not there", BACKEND)
        finally:
            surface.patches.remove(extra.patches[0])
        assert_untouched()
    with flagos_shim.activated(BACKEND):
        assert torch.device("cuda").type == KIND


def check_an_interrupt_leaves_nothing() -> None:
    def interrupt(ctx: Any, original: Any) -> Any:
        raise KeyboardInterrupt

    surface = [surface for surface in iterate(SURFACES) if surface.after is None][-1]
    extra = Surface("extra")
    extra.wrap("torch:zeros")(interrupt)
    surface.finders.append(lambda ctx: extra.patches)
    try:
        flagos_shim.activate(BACKEND)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("not raised")
    finally:
        surface.finders.pop()
    assert_untouched()


def check_bad_settings_leave_nothing() -> None:
    os.environ["FLAGOS_LOG_LEVEL"] = "nonsense"
    try:
        refused(flagos_shim.FlagosShimError, "FLAGOS_LOG_LEVEL='nonsense' cannot be read", BACKEND)
    finally:
        del os.environ["FLAGOS_LOG_LEVEL"]
    assert_untouched()


def check_many_threads_switch_on_at_once() -> None:
    errors: list[BaseException] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        try:
            barrier.wait(30)
            flagos_shim.activate(BACKEND)
            assert torch.zeros(1, device="cuda").device.type == KIND
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors, errors
    assert torch.zeros.__wrapped__ is PRISTINE.names["torch"]["zeros"], "wrapped once"
    assert flagos_shim.deactivate() == [] and torch.zeros is PRISTINE.names["torch"]["zeros"]


def check_threads_compute_while_it_comes_and_goes() -> None:
    stop = threading.Event()
    errors: list[BaseException] = []
    expected = {KIND, "cuda"}
    layer = torch.nn.Linear(2, 2)

    def work() -> None:
        while not stop.is_set():
            try:
                device = torch.device("cuda")
                assert _device_type.RoutedName.__str__(device.type) in expected, device
                assert torch.zeros(2).add(1).to(torch.float64).to("cpu").sum() == 2
                assert layer(torch.ones(1, 2)).new_zeros(2).tolist() == [0, 0]
                torch.ones(2).is_cuda, torch.cuda.is_available(), layer.to("cpu")
                try:
                    torch.zeros(1, device="cuda")
                except (AssertionError, RuntimeError) as error:
                    assert "CUDA" in str(error), error  # torch's own refusal
            except BaseException as error:
                errors.append(error)
                return

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            flagos_shim.activate(BACKEND)
            assert flagos_shim.deactivate() == []
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        sys.setswitchinterval(before)
    assert not errors, errors
    assert torch.zeros is PRISTINE.names["torch"]["zeros"]


def check_names_taken_before_activation() -> None:
    import types

    program = types.ModuleType("program")
    exec("from torch import zeros\nfrom torch.nn import Module\nfrom torch.cuda import is_available", vars(program))
    sys.modules["program"] = program
    held = dict(vars(program))
    with flagos_shim.activated(BACKEND):
        assert program.zeros is torch.zeros and program.is_available is torch.cuda.is_available
        assert program.is_available() and program.zeros(1, device="cuda").device.type == KIND
    assert vars(program) == held
    del sys.modules["program"]


if __name__ == "__main__":
    _checks.run(globals())
