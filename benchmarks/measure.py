"""Workers of all ways side by side, each asked in turn: what disturbs the machine disturbs all of them alike."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .calls import Call
from .ways import WAYS, Way, environment

ROOT = Path(__file__).resolve().parent.parent

Samples = dict[str, dict[str, list[float]]]


class Worker:
    """One interpreter that answers requests; see `benchmarks.worker`."""

    def __init__(self, key: str) -> None:
        self.way = WAYS[key]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", key],
            cwd=ROOT, env=environment(self.way, dict(os.environ)), text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.greeting = self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"The worker {self.way.key} ended with {self._process.wait()}; see its output above.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def rounds(place: str, rows: Sequence[Call], sets: int, count: int, seconds: float) -> tuple[Samples, dict[str, str]]:
    """Time every row in every way of ``place``.

    Args:
        place: "ascend" or "cpu".
        rows: what to time.
        sets: how many fresh interpreters of each way, one after the other.
        count: rounds in each; in a round every way is asked once for every row.
        seconds: how long one piece lasts.

    Returns:
        expression -> way's name -> seconds of one call in each round; and what a way could not do.
    """
    samples: Samples = {row.expression: {} for row in rows}
    errors: dict[str, str] = {}
    keys = [key for key, way in WAYS.items() if way.place == place]
    for number in range(sets):
        workers = [Worker(key) for key in keys]
        try:
            for row in rows:
                # The way that is asked first alternates, so that none always follows the same other.
                for turn in range(count):
                    shift = (turn + number) % len(workers)
                    for worker in workers[shift:] + workers[:shift]:
                        _ask(worker, row, seconds, samples, errors)
        finally:
            for worker in workers:
                worker.close()
    return samples, errors


def _ask(
    worker: Worker, row: Call, seconds: float, samples: Samples, errors: dict[str, str], way: Way | None = None
) -> None:
    way = worker.way if way is None else way
    answer = worker.ask(time=row.spelled(way.name, way.device), seconds=seconds, processor=row.kind == "ratio")
    if "error" in answer:
        errors[f"{row.expression} ({way.key})"] = answer["error"]
    else:
        samples[row.expression].setdefault(way.name, []).append(answer["each"])


def step_rounds(place: str, rows: Sequence[Call], sets: int, count: int) -> tuple[Samples, dict[str, str]]:
    """Time steps under the shim and without it, by turns in one interpreter; see `benchmarks.steps`.

    Args and returns: as `rounds`.
    """
    samples: Samples = {row.expression: {} for row in rows}
    errors: dict[str, str] = {}
    native = WAYS[f"{place}/native"]
    for _ in range(sets):
        worker = Worker(f"{place}/shim")
        try:
            worker.ask(steps=True)
            for row in rows:
                for _ in range(count):
                    for way in (worker.way, native):
                        worker.ask(shim=way is worker.way)
                        _ask(worker, row, 0.0, samples, errors, way)
        finally:
            worker.close()
    return samples, errors


def extra(found: dict[str, list[float]], name: str) -> float | None:
    """Median over the rounds of what ``name`` takes on top of native in the same round, in seconds."""
    if name not in found or "native" not in found:
        return None
    return statistics.median(b - a for a, b in zip(found["native"], found[name]))


def ratio(found: dict[str, list[float]], name: str) -> float | None:
    """Median over the rounds of the time of ``name`` by the native one of the same round."""
    if name not in found or "native" not in found:
        return None
    return statistics.median(b / a for a, b in zip(found["native"], found[name]))
