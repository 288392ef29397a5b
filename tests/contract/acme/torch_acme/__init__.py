"""``torch_acme``: the plugin of a maker that nobody knows, on the pretend device (``tests/pretend``).

Its device module lacks what small plugins lack: range marks, what an SMI tool tells, memory pools, snapshots' details.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from _pretend import start
from _pretend.vendor import mount

from ._vendor import VENDOR

mount(__path__)
start.rename(VENDOR)

from . import amp, memory, random, storage  # noqa: E402, F401
from ._device import (  # noqa: E402, F401
    current_device,
    device,
    device_count,
    get_device_name,
    get_device_properties,
    is_available,
    set_device,
    synchronize,
)
from ._graphs import Graph as AcmeGraph  # noqa: E402, F401
from ._lazy import _is_in_bad_fork, _lazy_call, _lazy_init, init, is_initialized  # noqa: E402, F401
from .memory import (  # noqa: E402, F401
    empty_cache,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    reset_peak_memory_stats,
)
from .random import get_rng_state, initial_seed, manual_seed, manual_seed_all, seed, set_rng_state  # noqa: E402, F401
from .storage import *  # noqa: E402, F403
from .streams import Event, Stream, current_stream, default_stream, set_stream, stream  # noqa: E402, F401

__version__ = "1.4.0"
default_generators: tuple[Any, ...] = ()  # filled when the device starts
_initialized = False


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast computes in; torch asks for this."""
    return [torch.float16, torch.bfloat16]


start.register(VENDOR, sys.modules[__name__])
start.register_collectives(VENDOR, f"{__name__}.distributed")
