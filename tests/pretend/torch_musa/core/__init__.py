"""The plugin's modules, most of them shared with the other pretend vendors."""

from __future__ import annotations

from _pretend.vendor import mount

mount(__path__)
