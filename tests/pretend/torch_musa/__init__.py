"""A pretend ``torch_musa``: Moore Threads' plugin by its public API, on a device of host memory.

``torch.musa`` is this package itself. The names are those that MooreThreads/torch_musa's ``__init__.py`` imports in the
release for torch 2.5; what it does not import (``init``, ``StreamContext``, range markers, memory pools, what NVML
tells, ``reset_accumulated_memory_stats`` ...) is lacking here as well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from _pretend import start

from .core._vendor import VENDOR

start.rename(VENDOR)

from .core import amp, graphs, mccl, memory, mudnn  # noqa: E402, F401
from .core._device import (  # noqa: E402, F401
    _DeviceGuard,
    _exchange_device,
    _maybe_exchange_device,
    _sleep,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    ipc_collect,
    is_available,
    is_bf16_supported,
    set_device,
    synchronize,
)
from .core._lazy_init import _is_in_bad_fork, _lazy_init, is_initialized  # noqa: E402, F401
from .core.amp.common import amp_definitely_not_available  # noqa: E402, F401
from .core.graphs import (  # noqa: E402, F401
    MUSAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from .core.memory import (  # noqa: E402, F401
    empty_cache,
    max_memory_reserved,
    mem_get_info,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .core.random import (  # noqa: E402, F401
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .core.storage import (  # noqa: E402, F401
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from .core.streams import (  # noqa: E402, F401
    Event,
    ExternalStream,
    Stream,
    _set_stream_by_id,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from .core.totals import max_memory_allocated, memory_allocated, memory_reserved, memory_stats_all  # noqa: E402, F401

__version__ = "2.5.0+pretend"  # the plugin takes torch's number from 2.5 on
OutOfMemoryError = torch._C.OutOfMemoryError
default_generators: tuple[Any, ...] = ()  # filled when the device starts
_initialized = False


def get_arch_list() -> list:
    """The architectures that the plugin was built for."""
    return ["mp_21", "mp_22", "mp_31"]


def is_autocast_enabled() -> bool:
    """Whether autocast is on."""
    return torch.is_autocast_enabled(VENDOR.name)


def set_autocast_enabled(enable: bool) -> None:
    """Turns autocast on or off."""
    torch.set_autocast_enabled(VENDOR.name, enable)


def get_autocast_dtype() -> torch.dtype:
    """The type that autocast computes in."""
    return torch.get_autocast_dtype(VENDOR.name)


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Chooses the type that autocast computes in."""
    torch.set_autocast_dtype(VENDOR.name, dtype)


_torch_fork_rng = torch.random.fork_rng


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = VENDOR.name,
) -> Iterator[None]:
    """torch's ``fork_rng`` with the device for default."""
    with _torch_fork_rng(devices, enabled, _caller, _devices_kw, device_type):
        yield


start.register(VENDOR, sys.modules[__name__])
start.register_collectives(VENDOR, f"{__name__}.distributed")

# The plugin assigns these to torch itself (its __init__.py): a shim meets them already changed.
torch.random.fork_rng = fork_rng
torch.backends.__setattr__("mudnn", mudnn)
torch.version.musa = "4.3.0"
torch.cuda._lazy_init = _lazy_init
