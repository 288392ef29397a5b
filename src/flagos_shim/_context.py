"""What a patch may know: the vendor, its device module, and how device names translate."""

from __future__ import annotations

import logging
from numbers import Integral
from typing import TYPE_CHECKING, Any

from . import _settings
from ._devices import DeviceTable, KindTable, parse

if TYPE_CHECKING:
    from ._coverage import Decision
    from ._environment import Changes
    from .vendor import Vendor


class Context:
    """The state that all stand-ins of one activation share.

    Attributes:
        vendor: the vendor in force.
        device_type: torch's name of its devices, e.g. "npu"; None once deactivated, so that no device is ours.
        devices: device string -> interned ``torch.device``; see DeviceTable.
        kinds: ``torch.device`` -> the plain name of its type, whoever asks.
        module: the vendor's device module, e.g. ``torch.npu``; None where the vendor has none (cpu).
        environment: the variables that activation has set; the cards to see may be set again before the first use.
        remembered: what a program has set on a switch that the vendor does not have, to be read back.
        missing: torch's name of a device that is not there, on a vendor with one device; None where torch refuses it.
        names: what became of each public name of torch.cuda; see `_coverage`.
        fallbacks: operator -> how often the plugin said that it computes it on the CPU.
        active: False once deactivated; stand-ins that somebody still holds then behave as torch's own.
    """

    def __init__(self, vendor: Vendor, aliases: tuple[str, ...], module: Any, environment: Changes) -> None:
        import torch

        self.vendor = vendor
        self.aliases = aliases
        self.active = True
        self.device_type: str | None = vendor.device_type
        self.module = module
        self.environment = environment
        self.remembered: dict[str, Any] = {}
        self.fallbacks: dict[str, int] = {}
        self.names: tuple[Decision, ...] = ()
        self.log = logging.getLogger("flagos_shim")
        # A build for CUDA might have such a card.
        self.missing = None if vendor.indexed or vendor.identity or torch.backends.cuda.is_built() else "cuda"
        self._device = torch._C.device  # some plugins put a class of their own at `torch.device`
        self.devices = DeviceTable(aliases, self.make_device)
        self.kinds = KindTable(vars(self._device)["type"].__get__)

    def make_device(self, index: int | None) -> Any:
        """The vendor's ``torch.device`` for an ordinal; one without ordinals (cpu) has one device without index.

        A second one is `missing` there: torch refuses to use it, where it would take ``cpu:1`` for the CPU.
        """
        if index is None or (index == 0 and not self.vendor.indexed):
            return self._device(self.vendor.device_type)
        return self._device(self.missing or self.vendor.device_type, index)

    def translate(self, value: Any) -> Any:
        """What to hand torch for ``value`` at a device position: strings by the table, all else as it is.

        An integer, also an enumeration's or NumPy's, is an ordinal of the vendor's device.
        """
        if isinstance(value, str):
            return self.devices[str.__str__(value)]
        kind = value.__class__
        if kind is not int:
            numpys = kind.__module__ == "numpy" and isinstance(value, Integral)
            if kind is bool or not (numpys or isinstance(value, int)):
                return value
            value = int(value)
        return value if self.device_type is None else self.make_device(value)

    def accelerator(self, value: Any) -> Any:
        """The vendor's device for what ``.cuda(device)`` takes: None (the current one), an ordinal, or a device.

        Raises:
            ValueError: ``value`` names another kind of device, as torch's own ``.cuda`` refuses it.
        """
        if value is None:
            return self.make_device(None)
        device = self.translate(value)
        if isinstance(device, str):
            device = self._device(device)
        if getattr(device, "type", None) not in (self.device_type, self.missing or self.device_type):
            raise ValueError(f"Invalid device, must be cuda device: got {value!r}.")
        return device

    def ordinal(self, value: Any) -> int | None:
        """The ordinal in what torch.cuda takes as ``device``: None (the current one), an int, a string or a device.

        Raises:
            ValueError: ``value`` names another kind of device.
        """
        if value is None or value.__class__ is int:
            return value
        if isinstance(value, int):
            return int(value)
        index: int | None = self.accelerator(value).index
        return index

    def device_kind(self, value: Any) -> Any:
        """What to hand torch for ``value`` where it takes a device *type*: "cuda" becomes "npu", "cpu" stays."""
        if isinstance(value, str):
            text = str.__str__(value)
            if text in self.aliases:
                return self.device_type
            # torch takes "cuda:0" in most of these places too.
            found = parse(text, self.aliases)
            return text if found is None else str(self.make_device(found[1]))
        return value

    @property
    def shown_module(self) -> Any:
        """What a program gets as device module: torch.cuda, or the vendor's where torch.cuda is left as it is."""
        import torch

        return self.module if _settings.DISABLE_CUDA_SHIM.read() else torch.cuda

    def owns(self, device: Any) -> bool:
        """True where ``device`` (a ``torch.device``) is the vendor's, and the vendor is an accelerator."""
        return self.vendor.indexed and self.kinds[device] == self.device_type

    def wake(self, aliases: tuple[str, ...], environment: Changes) -> None:
        """Be in force again after ``close``, for stand-ins that were left below what somebody else put on top."""
        self.active = True
        self.device_type = self.vendor.device_type
        self.aliases = aliases
        self.environment = environment
        self.remembered.clear()
        self.fallbacks.clear()
        self.names = ()
        self.devices.open(aliases)

    def close(self) -> None:
        """Go dormant."""
        self.active = False
        self.device_type = None
        self.aliases = ()
        self.devices.close()
