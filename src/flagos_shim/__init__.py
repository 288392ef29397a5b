"""Run unmodified PyTorch CUDA programs on any accelerator whose vendor ships a PyTorch plugin.

``import flagos_shim`` activates: at once where torch has been imported, otherwise as soon as it is.
"""

from . import _startup
from ._version import __version__
from .failures import (
    BackendUnavailableError,
    ConflictError,
    FlagosShimError,
    PatchError,
    UnknownBackendError,
)

__all__ = [
    "BackendUnavailableError",
    "ConflictError",
    "FlagosShimError",
    "PatchError",
    "UnknownBackendError",
    "__version__",
    "activate",
    "activated",
    "deactivate",
    "status",
]


def __getattr__(name: str) -> object:
    # Loaded on first use, so that an interpreter that only waits for torch stays light.
    if name in ("activate", "activated", "deactivate"):
        from . import _activation

        return getattr(_activation, name)
    if name == "status":
        from ._report import status

        return status
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not _startup.torch_is_importing():
    _startup.install()
