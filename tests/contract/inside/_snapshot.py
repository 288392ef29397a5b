"""What torch and the plugin hold: every name of every module and class of theirs, by identity."""

from __future__ import annotations

import builtins
import ctypes
import sys
from types import ModuleType
from typing import Any

PACKAGES = ("torch", "torch_npu", "torchair", "torchgen", "functorch")

# C types whose slots are changed; what is left out of a type is the cache of the interpreter: flags and version tag.
SLOTS = ("RuntimeError", "Exception")
_KEPT = (*range(24, 168), *range(176, 376))


def _modules() -> dict[str, ModuleType]:
    return {
        name: module for name, module in sys.modules.items()
        if name.partition(".")[0] in PACKAGES and isinstance(module, ModuleType)
    }  # fmt: skip


def _slots() -> dict[str, bytes]:
    import torch

    types = {"torch.device": torch.device, **{name: getattr(builtins, name) for name in SLOTS}}
    found = {}
    for name, owner in types.items():
        raw = ctypes.string_at(id(owner), 400)
        found[name] = bytes(raw[i] for i in _KEPT)
    return found


class Snapshot:
    """All names, the contents of all containers at module level, and the slots of the C types concerned."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str, Any]] = {}
        self.containers: dict[str, Any] = {}
        classes: dict[int, tuple[str, type]] = {
            id(t): (t.__name__, t) for t in (RuntimeError, Exception, BaseException)
        }
        for name, module in _modules().items():
            self.names[name] = dict(vars(module))
            for key, value in vars(module).items():
                if issubclass(type(value), type) and (value.__module__ or "").partition(".")[0] in PACKAGES:
                    classes.setdefault(id(value), (f"{value.__module__}.{value.__qualname__}", value))
                if type(value) in (list, set, dict) and not key.startswith("__"):
                    held = list(value.items()) if isinstance(value, dict) else list(value)
                    self.containers[f"{name}.{key}"] = (value, held)
        for number, (name, owner) in classes.items():
            self.names[f"{name}#{number}"] = dict(vars(owner))
        self.slots = _slots()

    def differences(self, later: Snapshot) -> list[str]:
        """What is not as it was; new modules, and the submodules that their import put into their parents, may be."""
        found = []
        for owner, names in self.names.items():
            now = later.names.get(owner)
            if now is None:
                found.append(f"{owner} is gone")
                continue
            for name, value in names.items():
                if name not in now:
                    found.append(f"{owner}: {name} is gone")
                elif now[name] is not value and not _counter(value, now[name]):
                    found.append(f"{owner}: {name} was {value!r:.80}, is {now[name]!r:.80}")
            for name in now.keys() - names.keys():
                if not isinstance(now[name], ModuleType):
                    found.append(f"{owner}: {name} is new: {now[name]!r:.80}")
        for place, (value, held) in self.containers.items():
            entry = later.containers.get(place)
            if entry is not None and entry[0] is value and not _same(held, entry[1]):
                found.append(f"{place} held {len(held)}, holds {len(entry[1])}")
        found += [f"the slots of {name} differ" for name in self.slots if self.slots[name] != later.slots[name]]
        return found


def _counter(before: Any, now: Any) -> bool:
    return type(before) is type(now) and isinstance(before, (int, float))


def _same(before: list[Any], now: list[Any]) -> bool:
    def flat(items: list[Any]) -> list[int]:
        return sorted(id(part) for item in items for part in (item if type(item) is tuple else (item,)))

    return flat(before) == flat(now)
