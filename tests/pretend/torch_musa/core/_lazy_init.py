"""``torch_musa.core._lazy_init``, under the name that the plugin's file has."""

from __future__ import annotations

from ._lazy import DeferredCallError as DeferredMusaCallError  # noqa: F401
from ._lazy import _is_in_bad_fork, _lazy_call, _lazy_init, is_initialized  # noqa: F401

_TEXTS = {1: "invalid argument", 2: "out of memory", 101: "invalid device ordinal"}


class MusaError(RuntimeError):
    """``<text> (<code>)``, as the plugin's copy of ``torch.cuda.CudaError`` words it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_TEXTS.get(code, 'unknown error')} ({code})")


def check_error(res: int) -> None:
    """MusaError if ``res`` is not success."""
    if res != 0:
        raise MusaError(res)
