"""The checks of a vendor on its device, in a process of their own; for `check_vendor`.

``python -m flagos_shim._vendor_device module:VENDOR name`` prints a line a check, "[OK] ..." or "[FAIL] ...";
the exit code is 1 where one failed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from . import _startup, registry
from .vendor import Vendor, at

_MISSING = object()


class _Failed(Exception):
    """A promise of the data that does not hold."""


def _expect(holds: Any, text: str) -> None:
    if not holds:
        raise _Failed(text)


def _reach(owner: Any, path: str) -> Any:
    for part in path.split("."):
        owner = getattr(owner, part, _MISSING)
    return owner


def _place(place: str) -> Any:
    """What "module:dotted.name" names, or _MISSING."""
    module, _, path = place.partition(":")
    try:
        head, _, rest = path.partition(".")
        found = at(f"{module}:{head}")
    except (ImportError, AttributeError):
        return _MISSING
    return _reach(found, rest) if rest else found


def _names(vendor: Vendor, known: dict[str, bool], module: Any) -> Iterator[str]:
    """Names that the data gives and that are not there.  ``known``: name -> whether torch.cuda had it."""
    for field in ("renames", "absent"):
        for name in getattr(vendor, field):
            if not known[name]:
                yield f"{field}[{name!r}]: torch.cuda has no {name}; expected one of its names: correct or remove it."
    for name, target in vendor.renames.items():
        owner = module
        if name.startswith("cudart."):  # a name of what that function returns
            runtime = _reach(module, vendor.renames.get("cudart", "cudart"))
            owner = runtime() if callable(runtime) else _MISSING
        if _reach(owner, target) is _MISSING:
            yield (
                f"renames[{name!r}] is {target!r}: {vendor.namespace} has no {target}; expected one of its names: "
                "correct it, or remove the entry."
            )


def _places(vendor: Vendor) -> Iterator[str]:
    import torch

    if vendor.process_group is not None and not isinstance(_place(vendor.process_group), type):
        yield f"process_group is {vendor.process_group!r}: no class there; expected the plugin's: correct it."
    if vendor.before_load is not None and not callable(_place(vendor.before_load)):
        yield f"before_load is {vendor.before_load!r}: no function there; expected the plugin's: correct it."
    if vendor.toolkit is not None and not hasattr(torch.version, vendor.toolkit):
        yield f"toolkit is {vendor.toolkit!r}: torch.version has no such name; expected that of the plugin: correct it."
    if vendor.compile_backend is not None:
        known = torch._dynamo.list_backends(exclude_tags=())
        if vendor.compile_backend not in known:
            listed = ", ".join(known)
            yield f"compile_backend is {vendor.compile_backend!r}: torch.compile knows {listed}; take one of them."
    for switch, fused in vendor.fused.items():
        for place in (*fused.targets, fused.build):
            if not callable(_place(place)):
                yield f"fused[{switch!r}] names {place!r}: no function there; expected 'module:name': correct it."


def checks(where: str, name: str) -> Iterator[str]:
    """Activate the vendor at ``where`` and try what its data promises; yield a line a check that held.

    Raises:
        _Failed: one did not.
    """
    vendor = registry.load(where)
    registry.resolve = lambda name: vendor  # this one, also where an older release of it is installed
    import torch

    from . import _activation

    known = {
        key: key.startswith("cudart.") or _reach(torch.cuda, key) is not _MISSING
        for key in (*vendor.renames, *vendor.absent)
    }
    _activation.activate(name)
    active = _activation.current()
    assert active is not None
    _expect(not active.ledger.failures, f"patches that do not fit: {active.ledger.failures}; expected none")
    yield f"activated: {len(active.ledger.entries)} patches"
    wrong = [*_names(vendor, known, active.ctx.module), *_places(vendor)]
    for text in wrong:
        yield "FAIL " + text
    if not wrong:
        yield "the names and places in it are there"
    yield from _computes(vendor)
    yield from _out_of_memory(vendor)
    if vendor.collective is not None:
        _expect(
            torch.distributed.is_nccl_available() or torch.distributed.is_backend_available(vendor.collective),
            f"collective is {vendor.collective!r}: torch.distributed does not know it; expected the name that the "
            "plugin registers: correct it",
        )
        yield f"collectives {vendor.collective}"
    covered = _activation.deactivate()
    _expect(not covered, f"something stands on top of {', '.join(covered)}; expected to undo every patch")
    yield "undone"


def _computes(vendor: Vendor) -> Iterator[str]:
    import torch

    x = torch.arange(4.0, device="cuda")
    found = (x + 1).cpu().tolist()
    _expect(found == [1.0, 2.0, 3.0, 4.0], f"torch.arange(4.0) + 1 is {found}; expected [1.0, 2.0, 3.0, 4.0]")
    wanted = (vendor.device_type, torch.cuda.current_device() if vendor.indexed else None)
    _expect(
        (str(x.device.type), x.device.index) == wanted,
        f"a tensor made on 'cuda' is on {x.device}; expected {wanted[0]}, number {wanted[1]}: see device_type",
    )
    yield f"a tensor on {x.device}"
    torch.nn.Linear(4, 2).cuda()(x).sum().backward()
    yield "forward and backward of a layer"
    torch.cuda.manual_seed(3)
    state = torch.cuda.get_rng_state()
    first = torch.rand(4, device="cuda").cpu()
    torch.cuda.set_rng_state(state)
    _expect(
        torch.equal(first, torch.rand(4, device="cuda").cpu()),
        "random numbers differ after set_rng_state(get_rng_state()); expected the same: see the plugin's generator",
    )
    yield "random numbers repeat from a saved state"
    used, capability = torch.cuda.memory_allocated(), torch.cuda.get_device_capability()
    _expect(used >= 0, f"torch.cuda.memory_allocated() is {used}; expected 0 or more")
    _expect(capability is not None, "torch.cuda.get_device_capability() is None; expected a pair: see capability")
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    torch.cuda.synchronize()
    yield f"memory statistics, events, {torch.cuda.get_device_name()}"


def _out_of_memory(vendor: Vendor) -> Iterator[str]:
    import torch

    if not vendor.indexed or vendor.identity:
        return  # the CPU's errors, and CUDA's own, are torch's
    try:
        torch.empty(1 << 55, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        text = str(error).partition("\n")[0]
        _expect(
            isinstance(error, torch.cuda.OutOfMemoryError) and getattr(error, "vendor", None) == vendor.name,
            f"no rule of `errors` recognises {type(error).__name__}: {text}; expected torch.cuda.OutOfMemoryError: add "
            "a rule whose pattern matches the beginning of this text",
        )
        _expect(
            str(error).startswith("CUDA out of memory. Tried to allocate "),
            f"out of memory reads {text!r}; expected torch's words, 'CUDA out of memory. Tried to allocate ...'",
        )
        yield "out of memory is torch.cuda.OutOfMemoryError in torch's words"
    else:
        raise _Failed("2**55 bytes could be allocated; expected the plugin's error for too little memory")


def main() -> int:
    """Print the checks of the vendor that the arguments name."""
    _startup.withdraw()
    code = 0
    try:
        for line in checks(*sys.argv[1:3]):
            failed = line.startswith("FAIL ")
            code |= failed
            print(f"[FAIL] {line[5:]}" if failed else f"[OK] {line}", flush=True)
    except _Failed as failure:
        print(f"[FAIL] {failure}.")
        return 1
    except Exception as error:
        text = str(error).partition("\n")[0] or "no text"
        print(
            f"[FAIL] {type(error).__name__}: {text}; expected the back end to start and compute: see device_type, "
            "namespace and package, and whether the plugin itself works"
        )
        raise
    return code


if __name__ == "__main__":
    sys.exit(main())
