"""Checks of what is the vendors' own: wordings, variables, silent failures, missing operators, names.

Run as ``python vendors.py DEVICE CHECK``: imports the device's package, does that check, prints OK last.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

D = sys.argv[1]
PLUGIN = importlib.import_module(f"torch_{D}")
V = getattr(torch, D)


def raises(call: Callable[[], Any], kind: type[BaseException], text: str) -> BaseException:
    """The error of type ``kind`` that ``call`` raises; AssertionError if it raises none or ``text`` is not in it."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"nothing raised, expected {kind.__name__}: {text}")


def older_out_of_memory() -> None:
    error = raises(lambda: torch.empty(1 << 30, device=D), RuntimeError, "already allocated")
    print(type(error).__name__, error)


def missing_operator() -> None:
    torch.softmax(torch.ones(2, device=D), 0)


def fallback() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            assert torch.softmax(torch.ones(2, device=D), 0).device.type == D
    (warning,) = seen
    print(warning.message)


def injected() -> None:
    matrix = torch.ones(2, 2, device=D)
    raises(V.synchronize, RuntimeError, "CNRT error: failed to call the driver-api function.")
    raises(lambda: matrix @ matrix, RuntimeError, "CNNL error: CNNL_STATUS_BAD_PARAM")


def rescued() -> None:
    matrix = torch.ones(2, 2, device=D)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert (matrix @ matrix).tolist() == [[2.0, 2.0]] * 2
    assert "'aten::mm' fails on the MLU backend and will fall back" in str(seen[0].message)


def wrong_ordinals() -> None:
    for wrong in (lambda: V.set_device(99), lambda: torch.ones(2, device=D + ":9"), lambda: torch.ones(2).to(D + ":9")):
        print(raises(wrong, RuntimeError, "error: invalid"))
    V.set_device(-1)
    raises(lambda: V.get_device_properties(99), AssertionError, "Invalid device id")
    p = V.get_device_properties(0)
    assert p.name == V.get_device_name() and p.total_memory == 1 << 30 and p.multi_processor_count > 0
    assert (p.major, p.minor) == V.get_device_capability()
    print(p.name, p.major, p.minor)


def visible_devices() -> None:
    os.environ.update(json.loads(sys.argv[3]))  # after the import, before the first use
    count = V.device_count()
    print(count, *([int(V.get_device_properties(0).uuid[-1])] if count else []))
    assert V.is_available() == (count > 0)
    if not count:
        raises(V.init, RuntimeError, "No MLU devices are available")


def deferred_call() -> None:
    lazy = importlib.import_module(V.memory.__name__.replace("memory", "_lazy"))
    lazy._lazy_call(lambda: 1 / 0)
    torch.ones(2, device=D)
    assert V.is_initialized()


def forked_child() -> None:
    torch.ones(1, device=D)
    child = os.fork()
    if not child:
        raises(V.current_device, RuntimeError, f"Cannot re-initialize {D.upper()} in forked subprocess")
        os._exit(17)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


def asking() -> None:
    assert V.is_available() and V.device_count() == 2 and not V.is_initialized() and V.memory_allocated() == 0
    torch.manual_seed(1)
    assert not V.is_initialized() and V.default_generators == ()
    torch.ones(1, device=D)
    assert V.is_initialized() and V._initialized and V.initial_seed() == 1


def surface() -> None:
    surface = json.loads((Path(PLUGIN.__file__).parent / "surface.json").read_text())["modules"]
    found: dict[str, Any] = {}
    for name, names in surface.items():
        module = importlib.import_module(name)
        found[name] = {
            kind: [n for n in names[kind] if hasattr(module, n) is (kind != "lacks")]
            for kind in ("has", "lacks", "own")
        }
        found[name]["signatures"] = {}
        for n, wanted in names["has"].items():
            if wanted and hasattr(module, n):
                thing = getattr(module, n)
                call = (
                    thing
                    if not isinstance(thing, type)
                    else thing.__new__
                    if wanted.startswith("(cls")
                    else thing.__init__
                )
                full = inspect.signature(call)
                bare = [p.replace(annotation=inspect.Parameter.empty) for p in full.parameters.values()]
                found[name]["signatures"][n] = str(
                    full.replace(parameters=bare, return_annotation=inspect.Signature.empty)
                )
    print(json.dumps(found))


def musa_habits() -> None:
    lacks = [
        "init",
        "StreamContext",
        "nvtx",
        "nccl",
        "MemPool",
        "utilization",
        "temperature",
        "reset_accumulated_memory_stats",
        "FloatStorage",
    ]
    assert V is PLUGIN and [n for n in lacks if hasattr(V, n)] == []
    assert V.memory_allocated(all_device=True) == 0 and torch.backends.mudnn.is_available() and torch.version.musa
    assert (
        torch.cuda._lazy_init.__module__.startswith("torch_musa") and torch.random.fork_rng.__module__ == "torch_musa"
    )


globals()[sys.argv[2]]()
print("OK")
