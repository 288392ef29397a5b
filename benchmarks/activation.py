"""A fresh interpreter that times its own activation, after torch and the plugin have been imported.

``python -m benchmarks.activation KEY`` prints a JSON object: ``seconds`` of processor time, ``wall`` seconds and
``memory`` in bytes, all on top of what was there.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter, process_time

from . import ways


def resident() -> int:
    """Bytes of this process that are in memory (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(key: str) -> None:
    """Measure and print."""
    way = ways.WAYS[key]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    ways.before_torch(way, alone=True)
    ways.import_plugin(way)
    memory = resident()
    before, wall = process_time(), perf_counter()
    if way.name == "peer":
        ways.switch_on_peer()
    elif way.name == "shim":
        from flagos_shim import activate

        activate(ways.REHEARSED if way.place == "ascend" else "cpu")
    seconds, wall = process_time() - before, perf_counter() - wall
    memory = resident() - memory
    ways.check(way)
    with answers:
        print(json.dumps({"seconds": seconds, "wall": wall, "memory": memory}), file=answers)


if __name__ == "__main__":
    main(sys.argv[1])
