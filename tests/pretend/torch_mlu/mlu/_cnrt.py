"""The runtime's status codes, as far as the plugin shows them (Cambricon/torch_mlu mlu/__init__.py)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ._lazy import _lazy_init

_TEXTS = {0: "no error", 100: "no device", 632000: "invalid argument", 632002: "out of memory"}


class mluError(int):
    """A status of the runtime; 0 is success. Numbers other than 0 are this device's own."""

    success = 0


_module = SimpleNamespace(mluError=mluError, mluGetErrorStr=lambda status: _TEXTS.get(int(status), "unknown error"))


def cnrt() -> Any:
    """The runtime's bindings (torch.cuda's ``cudart``)."""
    _lazy_init()
    return _module


class CnrtError(RuntimeError):
    """``<text> (<code>)``: raised by ``check_error`` alone; errors of operators are plain RuntimeErrors."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_module.mluGetErrorStr(mluError(code))} ({code})")


def check_error(res: int) -> None:
    """CnrtError if ``res`` is not success."""
    if res != mluError.success:
        raise CnrtError(res)
