"""``python -m flagos_shim.check_vendor module:VENDOR``: checks a vendor object, field by field, then on its device.

For whoever writes a vendor: what can be checked without the plugin is checked always; with the plugin installed, the
back end is activated in a process of its own and each promise of the data is tried.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from . import _startup, registry
from ._vendor_data import check_data
from .failures import FlagosShimError
from .vendor import Vendor
from .vendors import ALIASES, BUILTIN

_LIMIT = 180.0


def _claimed(vendor: Vendor, where: str) -> Iterator[str]:
    for name in vendor.names:
        other = BUILTIN.get(ALIASES.get(name, name))
        if other is not None and other != where:
            yield f"the name {name!r} belongs to the built-in vendor at {other}; choose another."


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
    mistakes = list(check_data(vendor)) or list(_claimed(vendor, where))
    for mistake in mistakes:
        print(f"[FAIL] {mistake}")
    if mistakes:
        print("[WARN] nothing was tried on a device: correct the data first")
        return 1
    print("[OK] its data is consistent")
    if not registry.is_installed(vendor):
        print(f"[WARN] {vendor.package} is not installed here: nothing was tried on a device")
        return 0
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    environ = {**os.environ, "PYTHONPATH": path, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environ.pop("FLAGOS_DEVICE_BACKEND", None)
    command = [sys.executable, "-m", "flagos_shim._vendor_device", where, vendor.name]
    try:
        run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        print(f"[FAIL] no answer within {_LIMIT:.0f} s; expected all checks to be done: does the driver hang?")
        return 1
    said = [line for line in run.stdout.splitlines() if line.startswith(("[OK] ", "[FAIL] "))]
    print("\n".join(said))
    if run.returncode and not any(line.startswith("[FAIL] ") for line in said):
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        print(f"[FAIL] exit code {run.returncode}; expected 0; its last words: {lines[-1] if lines else 'none'}")
    return int(run.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
