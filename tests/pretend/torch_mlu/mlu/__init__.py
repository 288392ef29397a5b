"""``torch.mlu``: it lacks what the public plugin lacks; ``../surface.json`` lists both."""

from __future__ import annotations

from typing import Any

import torch
from _pretend.vendor import mount

mount(__path__)

from . import (  # noqa: E402, F401
    _utils,
    amp,
    autocast_utils,
    cncl,
    cnpx,
    graphs,
    memory,
    profiler,
    random,
    reductions,
    storage,
    streams,
)
from ._cnrt import CnrtError, check_error, cnrt  # noqa: E402, F401
from ._device import (  # noqa: E402, F401
    _DeviceGuard,
    _exchange_device,
    _is_compiled,
    _maybe_exchange_device,
    _parse_visible_devices,
    _sleep,
    _transform_uuid_to_ordinals,
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
from ._lazy import (  # noqa: E402, F401
    _is_in_bad_fork,
    _lazy_call,
    _lazy_init,
    _queued_calls,
    init,
    is_initialized,
)
from ._utils import _get_device_index  # noqa: E402, F401
from .graphs import (  # noqa: E402, F401
    MLUGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from .memory import (  # noqa: E402, F401
    MLUPluggableAllocator,
    caching_allocator_alloc,
    caching_allocator_delete,
    change_current_allocator,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (  # noqa: E402, F401
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
from .storage import *  # noqa: E402, F403
from .streams import (  # noqa: E402, F401
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    _set_stream_by_id,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

OutOfMemoryError = torch._C.OutOfMemoryError  # mlu/__init__.py
default_generators: tuple[Any, ...] = ()  # filled when the device starts
_initialized = False


def is_fp8_supported() -> bool:
    """Whether the chip computes in 8-bit floats: an MLU370 does not."""
    return False


def supports_linear_memory(device: Any = None) -> bool:  # noqa: F811
    """Whether the device's memory is addressed linearly (mlu/__init__.py)."""
    get_device_properties(device)
    return True
