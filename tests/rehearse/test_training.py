"""Training on the rehearsed NPU ends with the weights that it ends with on the CPU."""

from __future__ import annotations

import json

from .conftest import Run


def test_training_agrees_with_the_cpu(run: Run) -> None:
    assert json.loads(run("training.py").stdout.splitlines()[-1]) == {}
