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
    raises by advice that does not help here. A program that only asks where one of them is starts nothing.
    """

    def __init__(self, name: str, environ: MutableMapping[str, str]) -> None:
        self._name = name
        self._environ = environ

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None but for torch and the plugin, whose loaders are wrapped (called by the import system)."""
        if name not in ("torch", PLUGIN):
            return None
        spec = _found_elsewhere(self, name, path, target)
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
    """Starts the runtime, executes torch or the plugin by its own loader, and after the plugin installs the operators.

    The own loader takes its place then; until then a program may ask this one for whatever the own one can do.
    """

    def __init__(self, inner: Any, environ: MutableMapping[str, str]) -> None:
        self._inner = inner
        self._environ = environ

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # a copy that is being made
            raise AttributeError(name)
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the own loader makes (called by the import system). Raises RehearsalError."""
        from . import ascend

        ascend.start(self._environ)
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module and, after the plugin, install the operators (called by the import system)."""
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        if module.__name__ == PLUGIN:
            from . import ascend

            ascend.install(self._environ)
