"""A pretend ``torch_mlu``: Cambricon's plugin by its public API, on a device of host memory.

What it has, and what it lacks, follows Cambricon/torch_mlu, branch r2.4_develop; ``surface.json`` lists the names.
"""

from __future__ import annotations

from _pretend import start

from .mlu._vendor import VENDOR

start.rename(VENDOR)

from . import mlu  # noqa: E402

__version__ = "1.24.1+pretend"  # the line of wheels for torch 2.4; a number for tools to print, not a claim of equality

start.register(VENDOR, mlu)
start.register_collectives(VENDOR, f"{__name__}.distributed")
