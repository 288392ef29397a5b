"""Every public name of ``torch.cuda`` on the installed torch, and the one state it is in for the vendor in force.

``python -m flagos_shim._coverage --write docs/coverage`` writes the tables for people.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import registry, rehearse
from ._context import Context
from ._cuda_names import DECLARED, StandIn, advice, find, forward, refusing, vendor_name
from ._cuda_public import groups, identified
from ._patching import Patch
from .vendors import BUILTIN

SAME = "same name"
OTHER = "other name"
EMULATED = "emulated here"
OWN = "torch's own"
UNSUPPORTED = "unsupported"
STATES = (SAME, OTHER, EMULATED, OWN, UNSUPPORTED)

_COMMAND = "python -m flagos_shim._coverage --write docs/coverage"

# Names that torch's own Python does right once the names it calls are routed; the vendor's would lose something
# (a class that programs hold already, or that torch.compile knows).
_OWN_FIRST = frozenset(
    (
        "device", "device_of", "_DeviceGuard", "StreamContext", "stream", "get_device_name", "get_device_capability",
        "_get_device", "_get_generator", "cudaStatus", "cudart", "has_half", "has_magma",
        "get_gencode_flags", "memory_summary", "AcceleratorError", "OutOfMemoryError", "nvtx.range",
        "_dump_snapshot", "_save_segment_usage", "_save_memory_usage",
    )
)  # fmt: skip

# The same where the vendor has no such name.
_OWN_ELSE = frozenset(
    (
        "get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all", "manual_seed", "manual_seed_all",
        "seed", "seed_all", "initial_seed", "_get_rng_state_offset", "_set_rng_state_offset", "memory_stats",
        "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
        "max_memory_cached", "reset_max_memory_allocated", "reset_max_memory_cached", "host_memory_stats", "set_stream",
        "mem_get_info", "CudaError", "DeferredCudaCallError",
    )
)  # fmt: skip

# Submodules whose names are torch's own throughout, and why.
_OWN_MODULES = {
    "torch.cuda.amp": "follows torch.amp, which is routed",
    "torch.cuda.profiler": "over cudart()",
    "torch.cuda.comm": "over copies between the vendor's devices",
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


def decide(ctx: Context) -> Iterator[Decision]:
    """One decision for every public object of torch.cuda, asking the plugin for each name."""
    for original, places in groups().values():
        declared = next((DECLARED[place] for place in places if place in DECLARED), None)
        yield _decide(ctx, tuple(places), original, declared)


def _decide(ctx: Context, places: tuple[str, ...], original: Any, declared: StandIn | None) -> Decision:
    dotted = [place.replace(":", ".").partition("torch.cuda.")[2] for place in places]
    name = dotted[0]
    short = name.rpartition(".")[2]
    lacking = declared is not None and declared.needs is not None and find(ctx, declared.needs) is None
    if lacking or not set(dotted).isdisjoint(ctx.vendor.absent):
        return _refused(ctx, places, original, name)
    if places[0].startswith("torch.cuda.memory:"):
        dotted.append(short)  # some plugins have these at the top only
    theirs, state, source = _theirs(ctx, dotted)
    if declared is not None:
        how = f"{source}: {declared.how}" if source else declared.how
        return _patched(places, state if theirs is not None else EMULATED, how, declared.build, declared.verb)
    own_module = next((why for m, why in _OWN_MODULES.items() if places[0].startswith((f"{m}:", f"{m}."))), None)
    if own_module is not None:
        return Decision(places, OWN, own_module, None)
    if not _OWN_FIRST.isdisjoint((name, short)) or (theirs is None and short in _OWN_ELSE):
        return Decision(places, OWN, _WHY_OWN if identified(original) else "data", None)
    if theirs is not None:
        return _patched(places, state, source, lambda c, o: _routed(c, o, theirs, name), _verb(original))
    if not identified(original):
        return Decision(places, OWN, "data", None)
    return _refused(ctx, places, original, name)


def _theirs(ctx: Context, names: list[str]) -> tuple[Any, str, str]:
    """What the vendor has for the first of these names that it knows, the state that makes, and where it is."""
    vendor = ctx.vendor
    for name in names:
        theirs = find(ctx, name)
        if theirs is not None:
            if vendor.package is None:  # the device module is this package's own
                return theirs, EMULATED, (getattr(theirs, "__doc__", "") or "").strip().partition("\n")[0]
            other = vendor_name(ctx, name)
            return theirs, SAME if other == name else OTHER, f"`{vendor.namespace}.{other}`"
    return None, EMULATED, ""


def _verb(original: Any) -> str:
    return "wrap" if inspect.isroutine(original) else "replace"


def _patched(places: tuple[str, ...], state: str, how: str, build: Any, verb: str) -> Decision:
    patch = Patch(places[0], build, f"{state}: {how}" if how else state, verb, also=places[1:])
    return Decision(places, state, how, patch)


def _refused(ctx: Context, places: tuple[str, ...], original: Any, name: str) -> Decision:
    return _patched(places, UNSUPPORTED, advice(ctx, name), lambda c, o: refusing(c, o, name), _verb(original))


def _routed(ctx: Context, original: Any, theirs: Any, name: str) -> Any:
    """The vendor's class or constant as it is, the vendor's function behind torch's signature."""
    if inspect.isroutine(original) and not isinstance(theirs, type):
        return forward(ctx, original, theirs, name)
    return theirs


def table(ctx: Context) -> str:
    """The coverage table of the vendor in force, as Markdown."""
    import torch

    counts = Counter(decision.state for decision in ctx.names)
    decided = {place for decision in ctx.names for place in decision.targets}
    lost = {place for _, places in groups().values() for place in places} - decided
    plugin = sys.modules.get(ctx.vendor.package or "")
    versions = f"torch {str(torch.__version__).partition('+')[0]}"
    if plugin is not None:
        versions += f", {ctx.vendor.package} {getattr(plugin, '__version__', '?')}"
    lines = [
        f"# torch.cuda on {ctx.vendor.title} (`{ctx.vendor.name}`)",
        "",
        f"Written by `{_COMMAND}` for {versions}. A name is found in every place that torch has it.",
        "",
        f"{len(ctx.names)} names, {len(lost)} lost: " + ", ".join(f"{counts[state]} {state}" for state in STATES) + ".",
        "",
        "| name | state | how |",
        "|---|---|---|",
    ]
    for decision in sorted(ctx.names, key=lambda d: d.name):
        lines.append(f"| `{decision.name}` | {decision.state} | {decision.how} |")
    return "\n".join(lines) + "\n"


def _startable() -> Iterator[tuple[str, str]]:
    """The vendors that start on this machine, and the launcher's option for each: rehearsed, installed, or the CPU."""
    for name, where in BUILTIN.items():
        vendor = registry.load(where)
        if name in rehearse.KNOWN:
            yield name, "--rehearse"
        elif not vendor.indexed or (vendor.package is not None and registry.is_installed(vendor)):
            yield name, "--backend"


def main(arguments: list[str]) -> int:
    """Write the tables of the vendors that start here (``--write DIRECTORY``), or print the active back end's."""
    if arguments == ["--print"]:
        importlib.import_module("torch")  # which activates the back end that was asked for
        from ._activation import current

        active = current()
        if active is None:
            sys.stderr.write("No back end is active: set FLAGOS_DEVICE_BACKEND.\n")
            return 1
        sys.stdout.write(table(active.ctx))
        return 0
    if len(arguments) != 2 or arguments[0] != "--write":
        sys.stderr.write(f"usage: {_COMMAND}\n")
        return 2
    directory = pathlib.Path(arguments[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, option in _startable():
        command = [sys.executable, "-m", "flagos_shim", option, name, "-m", "flagos_shim._coverage", "--print"]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        (directory / f"{name}.md").write_text(run.stdout, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
