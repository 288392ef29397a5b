"""A question put to a Python process of its own, with a time limit: what may hang or harm does so there."""

from __future__ import annotations

import json
import os
import sys
import time

from ._smi_process import ToolError, run

ASKED = "FLAGOS_SHIM_ASKED"
"""Set in such a process: `import flagos_shim` activates nothing there, also from a sitecustomize."""

# Not for the child: nothing is to be activated in it, nor any plugin loaded but the one that is asked for.
_OFF = {ASKED: "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
_BEGIN = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1))\n"


def ask(code: str, *arguments: str, limit: float) -> str:
    """Run ``code`` with ``sys.argv[1:]`` = ``arguments`` in a fresh interpreter that finds the same modules.

    Args:
        limit: seconds after which it is killed.

    Returns:
        The last line that it printed.

    Raises:
        ToolError: it was not done in time, or failed.
    """
    if not sys.executable:
        raise ToolError("This process does not know its own Python interpreter (sys.executable is empty).")
    environ = {name: value for name, value in os.environ.items() if name != "FLAGOS_DEVICE_BACKEND"}
    environ.update(_OFF)
    argv = ("python", "-c", _BEGIN + code, json.dumps(sys.path), *arguments)
    try:
        output, _ = run(argv, sys.executable, environ, time.monotonic() + limit)
    except ToolError as error:
        # Its own words have the whole program in them.
        said = f"no answer within {limit:g} s" if error.timed_out else str(error).rpartition(" and said: ")[2]
        raise ToolError(said, exit_code=error.exit_code, timed_out=error.timed_out) from None
    return output.strip().rpartition("\n")[2]
