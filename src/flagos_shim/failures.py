"""What the shim itself raises: about back ends, settings and patches, never about a device's own errors."""

from __future__ import annotations


class FlagosShimError(RuntimeError):
    """Any complaint of the shim's own; the message says what was given, what was expected and what to do."""


class UnknownBackendError(FlagosShimError):
    """``FLAGOS_DEVICE_BACKEND`` or an argument names a back end that nobody provides."""


class BackendUnavailableError(FlagosShimError):
    """The chosen back end is known, but one step of starting it failed; the message says which."""


class ConflictError(FlagosShimError):
    """Another shim, or another back end, already holds what this one would have to change."""


class PatchError(FlagosShimError):
    """A patch does not fit the installed torch; everything it had changed so far has been put back."""
