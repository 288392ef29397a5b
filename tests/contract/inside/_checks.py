"""Runs, in a child, every function of a script that is called check_*, and prints what became of each as JSON.

A script takes its back end as the only argument.  Before its checks run, torch and the plugin have been imported and
nothing is active.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "cpu"


def pristine() -> Any:
    """Import torch and the plugin as they are without this package; return the package, withdrawn."""
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    if BACKEND == "ascend":
        os.environ["FLAGOS_SHIM_REHEARSE"] = "ascend"
    import flagos_shim

    flagos_shim.deactivate()
    import torch  # noqa: F401

    if BACKEND == "ascend":
        from flagos_shim import rehearse

        rehearse.prepare("ascend", os.environ)
        import torch_npu  # noqa: F401
    return flagos_shim


def run(namespace: dict[str, Any]) -> None:
    """Run the checks in the order in which they stand."""
    results = {}
    for name, check in list(namespace.items()):
        if name.startswith("check_") and callable(check):
            try:
                check()
                results[name] = None
            except BaseException:
                results[name] = traceback.format_exc()
                sys.modules["flagos_shim"].deactivate()
    print(json.dumps(results))
