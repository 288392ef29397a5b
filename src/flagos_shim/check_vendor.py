"""``python -m flagos_shim.check_vendor module:VENDOR``: checks a vendor object, field by field, then on its device.

For whoever writes a vendor: what can be checked without the plugin is checked always; with the plugin installed, the
back end is activated in a process of its own and each promise of the data is tried.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence

from . import _startup, registry
from .failures import FlagosShimError
from .vendor import Vendor
from .vendors import ALIASES, BUILTIN

_LIMIT = 180.0

# Runs in a fresh interpreter, with the place of the vendor as argument; each line it prints is one check that held.
_ON_DEVICE = """
import sys
from flagos_shim import _startup, registry
_startup.withdraw()
where, name = sys.argv[1:]
vendor = registry.load(where)
registry.resolve = lambda _name: vendor  # this one, also where an older release of it is installed
import torch, flagos_shim
flagos_shim.activate(name)
active = flagos_shim._activation.current()
assert not active.ledger.failures, active.ledger.failures
print(f"activated: {len(active.ledger.entries)} patches")
x = torch.arange(4.0, device="cuda")
assert (x + 1).cpu().tolist() == [1.0, 2.0, 3.0, 4.0]
assert x.device.type == active.vendor.device_type and x.device.index == torch.cuda.current_device()
print(f"a tensor on {x.device}")
y = torch.nn.Linear(4, 2).cuda()(x).sum()
y.backward()
print("forward and backward of a layer")
torch.cuda.manual_seed(3)
state = torch.cuda.get_rng_state()
first = torch.rand(4, device="cuda").cpu()
torch.cuda.set_rng_state(state)
assert torch.equal(first, torch.rand(4, device="cuda").cpu()), "the random state does not come back"
print("random numbers repeat from a saved state")
assert torch.cuda.memory_allocated() >= 0 and torch.cuda.get_device_capability() is not None
event = torch.cuda.Event(enable_timing=True)
event.record()
torch.cuda.synchronize()
print(f"memory statistics, events, {torch.cuda.get_device_name()}")
try:
    torch.empty(1 << 55, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    assert str(error).startswith("CUDA out of memory. Tried to allocate "), error
    assert error.vendor == name, "no rule of `errors` recognises this: " + str(error)
    print("out of memory is torch.cuda.OutOfMemoryError in torch's words")
if active.vendor.collective is not None:
    assert torch.distributed.is_nccl_available(), active.vendor.collective + " is not registered in torch.distributed"
    print(f"collectives {active.vendor.collective}")
assert flagos_shim.deactivate() == [], "something stands on top of a patch"
print("undone")
"""


def check_data(vendor: Vendor) -> Iterator[str]:
    """Yield one sentence for each mistake in the data of ``vendor``; nothing here needs the plugin."""
    if vendor.package is not None and not vendor.probe.files:
        yield "probe.files is empty: without device files the back end is never detected."
    for pattern in vendor.probe.files:
        if not pattern.startswith("/"):
            yield f"probe.files: {pattern!r} is not an absolute pattern such as /dev/acme[0-9]*."
    for name, reason in vendor.absent.items():
        if len(reason.split()) < 2:
            yield f"absent[{name!r}] says {reason!r}: expected what to use instead, in words."
    for source, target in vendor.environment.items():
        if not all(re.fullmatch(r"[A-Z][A-Z0-9_]*", part) for part in (source, target)):
            yield f"environment: {source!r} -> {target!r}: expected names of environment variables."
    if not vendor.identity and vendor.indexed and vendor.visible_devices is None:
        yield "visible_devices is unset: CUDA_VISIBLE_DEVICES will not choose cards."
    for name in ("errors", "error_codes", "telemetry"):
        try:
            vendor.read(name)
        except (ImportError, AttributeError) as error:
            yield f"{name}: {error}"
            return
    from . import errors

    yield from errors.check(vendor.read("errors"), vendor.read("error_codes"))


def _claimed(vendor: Vendor, where: str) -> Iterator[str]:
    for name in vendor.names:
        other = BUILTIN.get(ALIASES.get(name, name))
        if other is not None and other != where:
            yield f"the name {name!r} belongs to the built-in vendor at {other}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line a check; exit code 0 where all hold, 1 where one fails, 2 where there is no vendor to check."""
    _startup.withdraw()
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or ":" not in arguments[0]:
        print("usage: python -m flagos_shim.check_vendor module:VENDOR", file=sys.stderr)
        return 2
    where = arguments[0]
    sys.path.insert(0, os.getcwd())
    try:
        vendor = registry.load(where)
    except FlagosShimError as error:
        print(f"[FAIL] {error}")
        return 2
    print(f"[OK] {where} is the vendor {vendor.name!r}: {vendor.title}")
    mistakes = [*_claimed(vendor, where), *check_data(vendor)]
    for mistake in mistakes:
        print(f"[FAIL] {mistake}")
    if not mistakes:
        print("[OK] its data is consistent")
    if not registry.is_installed(vendor):
        print(f"[WARN] {vendor.package} is not installed here: nothing was tried on a device")
        return int(bool(mistakes))
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    environ = {**os.environ, "PYTHONPATH": path, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environ.pop("FLAGOS_DEVICE_BACKEND", None)
    command = [sys.executable, "-c", _ON_DEVICE, where, vendor.name]
    try:
        run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        print(f"[FAIL] no answer from the device within {_LIMIT:.0f} s")
        return 1
    for line in run.stdout.splitlines():
        print(f"[OK] {line}")
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        print(f"[FAIL] {lines[-1] if lines else f'exit code {run.returncode}'}")
    return int(bool(mistakes) or run.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
