"""The meta-path finder that starts a rehearsal when torch, and with it the vendor's plugin, is imported."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

PLUGIN = "torch_npu"


class Finder:
    """Starts the runtime before torch or the plugin is imported, and the operators after the plugin's import.

    It starts at torch and not only at the plugin because torch imports the plugin itself and replaces whatever that
    raises by advice that does not help here.
    """

    def __init__(self, name: str, environ: MutableMapping[str, str]) -> None:
        self._name = name
        self._environ = environ
        self._busy = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None but for the plugin, whose loader is wrapped (called by the import system)."""
        if name not in ("torch", PLUGIN) or self._busy:
            return None
        from . import ascend

        self._busy = True  # starting looks for torch and the plugin itself
        try:
            ascend.start(self._environ)
            spec = _found_elsewhere(self, name, path, target) if name == PLUGIN else None
        finally:
            self._busy = False
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader, self._environ)  # type: ignore[assignment]  # not a subclass: importlib.abc is slow
        return spec


def _found_elsewhere(
    asked: Finder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is not asked:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


class Loader:
    """Executes the plugin by its own loader, then installs the operators; leaves the plugin's loader in its place."""

    def __init__(self, inner: Any, environ: MutableMapping[str, str]) -> None:
        self._inner = inner
        self._environ = environ

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the plugin's own loader makes (called by the import system)."""
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Execute the plugin and install the operators (called by the import system)."""
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        from . import ascend

        ascend.install(self._environ)
