"""Stands in for the wheel's start-up hook where it is not installed; then runs the sitecustomize that it hides."""

import importlib.machinery
import importlib.util
import os
import sys

if os.environ.get("FLAGOS_DEVICE_BACKEND") or os.environ.get("FLAGOS_SHIM_REHEARSE"):
    from flagos_shim import _startup

    _startup.install()

_here = os.path.dirname(os.path.abspath(__file__))
_hidden = importlib.machinery.PathFinder.find_spec(
    "sitecustomize", [p for p in sys.path if os.path.abspath(p) != _here]
)
if _hidden is not None and _hidden.loader is not None:
    # It takes this one's place, so that a program that asks for `sitecustomize` gets its own.
    sys.modules[__name__] = importlib.util.module_from_spec(_hidden)
    _hidden.loader.exec_module(sys.modules[__name__])
