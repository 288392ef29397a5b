"""PyYAML, once a program imports it: a configuration that holds ``x.device.type`` is written as with a plain string."""

from __future__ import annotations

from typing import Any

from .._context import Context
from .._device_type import DeviceType
from .._patching import Surface

surface = Surface("yaml", after="yaml.representer")


@surface.enrol("yaml.representer:SafeRepresenter.yaml_representers")
@surface.enrol("yaml.representer:Representer.yaml_representers")
def device_type(ctx: Context, _table: Any) -> Any:
    """The type of a device is written as `cuda`, so that the file serves on any machine."""
    return DeviceType, lambda dumper, name: dumper.represent_str(name.alias)
