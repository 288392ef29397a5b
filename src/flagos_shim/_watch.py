"""What a thread imports during a block; for modules of third parties, which are to start nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class Watch:
    """A block in which this thread's imports are noted, and that of torch is refused.

    Attributes:
        names: the modules that were looked for, which had not been imported before.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __enter__(self) -> Watch:
        self._thread = threading.get_ident()
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_raised: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Find nothing: for ``sys.meta_path``."""
        if threading.get_ident() == self._thread:
            self.names.add(name)
            if name == "torch":
                raise ImportError("a vendor's module must not import torch")
        return None
