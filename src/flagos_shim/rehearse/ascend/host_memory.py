"""CPU tensors over the memory of NPU tensors, and NPU tensors made from CPU results.

All device memory lies in one range of addresses (memory.c), so a host view is a strided window of one flat array for
each dtype. A view owns nothing: it is good for as long as the NPU tensor lives.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch

_strided = torch.as_strided
_empty = torch.ops.aten.empty_strided.default._op
_move = ctypes.memmove
# So large a tensor is copied by torch, which uses all cores; a smaller one by memmove, which costs less to call.
_MANY_BYTES = 1 << 20
_NO_HOST_MEMORY = re.compile(r"can't allocate memory: you tried to allocate (\d+) bytes")
DEVICES = [torch.device("npu", index) for index in range(64)]


def runtime() -> ctypes.CDLL:
    """Return the runtime's C library, loaded already by the time torch_npu is imported."""
    library = ctypes.CDLL("libascendcl.so")
    library.rehearse_arena.restype = ctypes.c_void_p
    library.rehearse_arena_bytes.restype = ctypes.c_size_t
    return library


class _Flats(dict[torch.dtype, tuple[torch.Tensor, int]]):
    """For each dtype the whole device memory as one CPU tensor, and the logarithm of the item's size."""

    def __init__(self) -> None:
        super().__init__()
        library = runtime()
        self.base: int = library.rehearse_arena()
        if not self.base:
            raise MemoryError(
                "The rehearsal could not reserve addresses for the memory of its chips. "
                "Lower FLAGOS_SHIM_REHEARSE_MEMORY_MB or FLAGOS_SHIM_REHEARSE_DEVICES, or raise `ulimit -v`."
            )
        self._memory = (ctypes.c_char * library.rehearse_arena_bytes()).from_address(self.base)

    def __missing__(self, dtype: torch.dtype) -> tuple[torch.Tensor, int]:
        flat = torch.frombuffer(self._memory, dtype=dtype, count=len(self._memory) // dtype.itemsize)
        self[dtype] = flat, dtype.itemsize.bit_length() - 1
        return self[dtype]


_flats = _Flats()
_base = _flats.base


def host_view(t: torch.Tensor) -> torch.Tensor:
    """Return a CPU tensor over the same memory as the NPU tensor ``t`` (of its parts, where it is sparse)."""
    if t.layout is not torch.strided:
        return _rebuilt(t, host_view)
    address = t.data_ptr()
    if not address:
        return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
    flat, shift = _flats[t.dtype]
    view = _strided(flat, t.size(), t.stride(), (address - _base) >> shift)
    if t.is_conj():
        view = view.conj()
    return cast(torch.Tensor, torch._neg_view(view)) if t.is_neg() else view


def to_device(t: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a copy of the CPU tensor ``t`` on the NPU ``device``. Raises torch.OutOfMemoryError as torch_npu does."""
    if t.layout is not torch.strided:
        return _rebuilt(t, lambda part: to_device(part, device))
    if t.is_conj() or t.is_neg():
        t = t.resolve_conj().resolve_neg()
    stride = t.stride()
    if 0 in stride:
        t = t.contiguous()
        stride = torch.empty(t.size()).stride()  # an axis of length 1 may keep a stride of 0
    out = _empty(t.size(), stride, dtype=t.dtype, device=device)
    count = t.numel()
    if count:
        size = count * t.element_size()
        if size < _MANY_BYTES and t.is_contiguous():
            _move(out.data_ptr(), t.data_ptr(), size)
        else:
            host_view(out).copy_(t)
    return cast(torch.Tensor, out)


def refuse_too_large(error: RuntimeError, device: torch.device) -> None:
    """Ask ``device`` for the memory that the host could not give, by its ``error``; nothing, where it is another error.

    Raises:
        torch.OutOfMemoryError: the chip has not got that much either; as torch_npu raises it.
    """
    found = _NO_HOST_MEMORY.search(str(error))
    if found is not None:
        _empty((int(found[1]),), (1,), dtype=torch.uint8, device=device)


def _rebuilt(t: torch.Tensor, convert: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return a sparse tensor like ``t`` of the same parts, each put through ``convert``."""
    if t.layout is not torch.sparse_coo:
        rows, columns = (
            (t.crow_indices(), t.col_indices())
            if t.layout in (torch.sparse_csr, torch.sparse_bsr)
            else (t.ccol_indices(), t.row_indices())
        )
        parts = [convert(part) for part in (rows, columns, t.values())]
        options = {"dtype": t.dtype, "layout": t.layout, "device": parts[2].device}
        return cast(torch.Tensor, torch.ops.aten._sparse_compressed_tensor_unsafe(*parts, t.shape, **options))
    indices, values = convert(t._indices()), convert(t._values())
    options = {"dtype": t.dtype, "layout": t.layout, "device": values.device}
    out = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(
        t.sparse_dim(), t.dense_dim(), t.shape, indices, values, **options
    )
    return cast(torch.Tensor, torch.ops.aten._coalesced_(out, t.is_coalesced()))


def to_host(value: Any) -> Any:
    """Return ``value`` with each NPU tensor in it, also in lists and tuples, replaced by its host view."""
    if isinstance(value, torch.Tensor):
        return value if value.is_cpu else host_view(value)
    if isinstance(value, (list, tuple)):
        return [to_host(item) for item in value]
    return value


def adopt(value: Any, device: torch.device) -> Any:
    """Return ``value`` with each CPU tensor in it, also in lists and tuples, replaced by its copy on ``device``."""
    if isinstance(value, torch.Tensor):
        return to_device(value, device) if value.is_cpu else value
    if isinstance(value, (list, tuple)):
        return type(value)(adopt(item, device) for item in value)
    return value


def device_of(values: Iterable[Any]) -> torch.device | None:
    """Return the device of the first NPU tensor among ``values`` and the lists in them, or None."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if not value.is_cpu:
                return value.device
        elif isinstance(value, (list, tuple)):
            found = device_of(value)
            if found is not None:
                return found
    return None
