"""The lazy start of the device in this process: queued calls, forked children, allocator settings."""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
import time
import traceback
from typing import Any, Callable

from ._vendor import VENDOR, C

_queued_calls: list[tuple[Callable[[], Any], list[str]]] = []
_seed_calls: list[tuple[Callable[[], Any], list[str]]] = []
_lock = threading.RLock()
_state = {"initialized": False, "initializing": False, "bad_fork": False}

# Keys of torch's own allocator setting, which both plugins took over.
_ALLOC_KEYS = ("max_split_size_mb", "garbage_collection_threshold", "expandable_segments", "roundup_power2_divisions")


class DeferredCallError(Exception):
    """A call that was queued before the device started has failed."""


def _is_in_bad_fork() -> bool:
    return _state["bad_fork"]


def _after_fork() -> None:
    if C.runtime_entered():
        _state["bad_fork"] = True


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _wait_at_exit() -> None:
    """Lets torch's autograd threads of the device finish, as a real plugin's shutdown does by waiting for the chip.

    Such a thread drops its last Python object a moment after ``backward`` has returned; if the interpreter is being
    taken down by then, the process aborts ("terminate called without an active exception").
    """
    if C.runtime_entered() and not _is_in_bad_fork():
        time.sleep(0.1)


def is_initialized() -> bool:
    """Whether the device has started in this process."""
    return _state["initialized"] and not _is_in_bad_fork()


def init() -> None:
    """Starts the device; does nothing if it has started."""
    _lazy_init()


def _lazy_call(callable: Callable[[], Any], **kwargs: Any) -> None:
    if is_initialized():
        callable()
    elif kwargs.get("seed_all") or kwargs.get("seed"):
        if kwargs.get("seed_all"):
            _seed_calls.clear()
        _seed_calls.append((callable, traceback.format_stack()))
    else:
        _queued_calls.append((callable, traceback.format_stack()))


def _apply_alloc_conf() -> None:
    # A value may be a list in brackets, which has commas of its own.
    for entry in re.findall(r"[^,\[\]]+(?:\[[^\]]*\])?", os.environ.get(VENDOR.alloc_conf, "")):
        key, _, value = entry.partition(":")
        if key.strip() not in _ALLOC_KEYS:
            raise RuntimeError(f"Unrecognized CachingAllocator option: {key.strip()}")
        if key.strip() == "max_split_size_mb":
            C.settings().max_split = int(value) << 20


def _lazy_init() -> None:
    if is_initialized() or _state["initializing"]:
        return
    with _lock:
        if is_initialized():
            return
        if _is_in_bad_fork():
            # Cambricon/torch_mlu mlu/__init__.py; MooreThreads/torch_musa follows CUDA's words as well.
            raise RuntimeError(
                f"Cannot re-initialize {VENDOR.label} in forked subprocess. "
                f"To use {VENDOR.label} with multiprocessing, "
                "you must use the 'spawn' start method"
            )
        C.maybe_fail("init")
        if not C.visible_devices():
            raise RuntimeError(VENDOR.texts["no_device"])
        C.enter_runtime()
        _apply_alloc_conf()
        _state["initializing"] = True
        try:
            for call, origin in [*_queued_calls, *_seed_calls]:
                try:
                    call()
                except Exception as error:
                    message = (
                        f"{VENDOR.label} call failed lazily at initialization with error: {error}\n\n"
                        f"{VENDOR.label} call was originally invoked at:\n\n{origin}"
                    )
                    # Cambricon/torch_mlu mlu/__init__.py builds this message and never raises it: a bad queued
                    # manual_seed is silent there. MooreThreads/torch_musa core/_lazy_init.py raises.
                    if VENDOR.deferred_call_raises:
                        raise DeferredCallError(message) from error
        finally:
            _state["initializing"] = False
        _state["initialized"] = True
        for package in (sys.modules[str(__package__)], sys.modules[f"torch.{VENDOR.name}"]):
            package._initialized = True  # type: ignore[attr-defined]
            package.default_generators = tuple(  # type: ignore[attr-defined]
                C.default_generator(index) for index in range(len(C.visible_devices()))
            )
