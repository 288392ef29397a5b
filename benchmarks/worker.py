"""A fresh interpreter of one way, which times what it is told, one short piece at a time.

``python -m benchmarks.worker KEY`` reads a JSON request a line and answers with a JSON object a line:
``{"time": expression, "seconds": s, "processor": false}`` gives ``{"each": seconds of one call}``, of processor time if
asked for, or ``{"error": text}``;
``{"steps": true}`` makes the training steps ready, ``{"shim": true}`` and ``{"shim": false}`` switch the shim.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from time import perf_counter, process_time
from typing import Any, Callable

from . import calls, steps, ways

# A piece is this many loops, of which the fastest counts: whatever else the machine does only ever adds.
_LOOPS = 4
_ADAPTING = 8


class Timer:
    """The expressions of one interpreter, compiled once, with the number of calls that fills a loop."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._loops: dict[str, tuple[Callable[[int], float], int]] = {}

    def each(self, expression: str, seconds: float, processor: bool) -> float:
        """Seconds of one call: the fastest of some loops that last about ``seconds`` together."""
        loop, count = self._loops.get(expression) or self._ready(expression, seconds / _LOOPS, processor)
        if processor:  # after the shim was switched, the interpreter first adapts to what it finds again
            loop(_ADAPTING)
        return min(loop(count) for _ in range(_LOOPS)) / count

    def _ready(self, expression: str, seconds: float, processor: bool) -> tuple[Callable[[int], float], int]:
        source = (
            "def loop(count, now=now):\n"
            "    counter = repeat(None, count)\n"
            "    before = now()\n"
            f"    for _ in counter:\n        {expression}\n"
            "    return now() - before\n"
        )
        from itertools import repeat

        self._names.update(now=process_time if processor else perf_counter, repeat=repeat)
        exec(compile(source, "<benchmark>", "exec"), self._names)
        loop = self._names["loop"]
        loop(1)
        count, spent = 1, loop(1)
        while spent < seconds / 4 and count < 1_000_000:
            count *= 4
            spent = loop(count)
        count = max(1, int(count * seconds / spent))
        self._loops[expression] = loop, count
        return loop, count


def main(key: str) -> None:
    """Answer requests until the input ends."""
    way = ways.WAYS[key]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what torch and the plugin print is not an answer
    ways.before_torch(way)
    import torch

    ways.after_torch(way)
    ways.check(way)
    torch.set_num_threads(1)
    names = calls.namespace(way.device)
    timer = Timer(names)
    gc.collect()
    gc.freeze()
    gc.disable()
    print(json.dumps({"ready": True, "torch": torch.__version__}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request.get("steps"):
                steps.add(way.device, names)
                answer: dict[str, Any] = {"ready": True}
            elif "shim" in request:
                ways.switch_shim(way, request["shim"])
                answer = {"ready": True}
            else:
                answer = {"each": timer.each(request["time"], request["seconds"], request["processor"])}
        except Exception as error:  # reported with its row; a call that one way lacks must not stop the others
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        gc.collect(0)
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main(sys.argv[1])
