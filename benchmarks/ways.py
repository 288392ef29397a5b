"""The ways that are compared, and how an interpreter for each is started.

Every way runs in an interpreter of its own.  On the rehearsed Ascend the three have the same plugin on the same host
memory; they differ only in who makes the names work.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass

REHEARSED = "ascend"


@dataclass(frozen=True)
class Way:
    """One way to run a program.

    Attributes:
        name: "native", "shim" or "peer".
        place: "ascend" (the real plugin, rehearsed) or "cpu" (plain torch).
        device: how the program spells the device type.
        variables: what the environment says besides the common part.
    """

    name: str
    place: str
    device: str
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """``place/name``."""
        return f"{self.place}/{self.name}"


# torch would load the plugin by itself, and by its entry point the shim, which sees that a rehearsal is asked for.
_NO_AUTOLOAD = (("TORCH_DEVICE_BACKEND_AUTOLOAD", "0"),)
_SHIM = (("FLAGOS_DEVICE_BACKEND", REHEARSED), ("FLAGOS_SHIM_REHEARSE", REHEARSED))

WAYS = {
    way.key: way
    for way in (
        Way("native", "ascend", "npu", _NO_AUTOLOAD),
        Way("shim", "ascend", "cuda", _SHIM),
        Way("peer", "ascend", "cuda", _NO_AUTOLOAD),
        Way("native", "cpu", "cpu", _NO_AUTOLOAD),
        Way("shim", "cpu", "cuda", (("FLAGOS_DEVICE_BACKEND", "cpu"), *_NO_AUTOLOAD)),
    )
}


def environment(way: Way, inherited: dict[str, str]) -> dict[str, str]:
    """The variables for an interpreter of ``way``: one thread, and nothing that another way has set."""
    clean = {k: v for k, v in inherited.items() if not k.startswith(("FLAGOS_", "ASCEND_", "TORCH_DEVICE_BACKEND"))}
    return {**clean, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **dict(way.variables)}


def before_torch(way: Way, alone: bool = False) -> None:
    """What an interpreter does before it imports torch: only the rehearsal, where the shim does not bring it.

    Args:
        way: the way.
        alone: the shim is to be activated later, by hand.
    """
    if way.name == "shim" and not alone:
        return
    from flagos_shim import _startup, rehearse

    _startup.withdraw()
    if way.place == "ascend":
        os.environ["FLAGOS_SHIM_REHEARSE"] = REHEARSED
        rehearse.prepare(REHEARSED, os.environ)


def import_plugin(way: Way) -> None:
    """Import torch, and the plugin as far as this way has one."""
    importlib.import_module("torch")
    if way.place == "ascend":
        importlib.import_module("torch_npu")


def after_torch(way: Way) -> None:
    """What a program of this way does once torch is there."""
    if way.name != "shim":
        import_plugin(way)
    if way.name == "peer":
        switch_on_peer()


def switch_on_peer() -> None:
    """The peer's one line: ``from torch_npu.contrib import transfer_to_npu``."""
    importlib.import_module("torch_npu.contrib.transfer_to_npu")


def switch_shim(way: Way, on: bool) -> None:
    """Activate or deactivate the shim in an interpreter that was started with it."""
    import flagos_shim

    if on:
        flagos_shim.activate(way.place)
    elif flagos_shim.deactivate():
        raise SystemExit("something stands on top of the shim's patches: this would not measure torch without it")


def check(way: Way) -> None:
    """Fail where this interpreter is not what it is to be: a hook that is not installed would measure native twice."""
    import torch

    activation = sys.modules.get("flagos_shim._activation")
    shim = activation is not None and activation.current() is not None
    if shim != (way.name == "shim"):
        raise SystemExit(
            f"{way.key}: the shim is {'active' if shim else 'not active'}; is the start-up hook installed?"
        )
    found = torch.empty(1, device=way.device).device
    if str(found).partition(":")[0] != ("npu" if way.place == "ascend" else "cpu"):
        raise SystemExit(f"{way.key}: device={way.device!r} gives {found}")
