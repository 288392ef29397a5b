"""``torch_musa.core._lazy_init``, under the name that the plugin's file has."""

from __future__ import annotations

from ._lazy import _is_in_bad_fork, _lazy_call, _lazy_init, is_initialized  # noqa: F401
