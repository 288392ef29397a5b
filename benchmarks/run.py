"""``python -m benchmarks``: measures all ways by turns, writes ``results.md`` and appends to ``history.json``."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import calls, measure, startup, table, ways

HERE = Path(__file__).resolve().parent
READMES = ("README.md", "README.zh-CN.md")


def machine() -> str:
    """The machine in words, without its name."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {model}"


def about() -> dict[str, str]:
    """What was measured on what."""
    found = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "python": platform.python_version(),
        "load": " ".join(f"{value:.1f}" for value in os.getloadavg()),
    }
    for name in ("torch", "torch_npu", "flagos_shim"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def patched() -> list[str]:
    """The targets of all patches that are active on the rehearsed Ascend."""
    code = "import torch, flagos_shim, json; print(json.dumps([p['target'] for p in flagos_shim.status()['patches']]))"
    variables = ways.environment(ways.WAYS["ascend/shim"], dict(os.environ))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=measure.ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def collect(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure everything."""
    rows: list[dict[str, Any]] = []
    errors: dict[str, str] = {}
    timed = {target for call in calls.table() for target in call.targets}
    for place in ("ascend", "cpu"):
        chosen = [call for call in calls.table() if place == "ascend" or call.cpu]
        print(f"{place}: {len(chosen)} calls", file=sys.stderr)
        samples, failed = measure.rounds(place, chosen, arguments.sets, arguments.rounds, arguments.piece)
        rows += table.rows_of(place, chosen, samples)
        errors.update(failed)
        print(f"{place}: training steps", file=sys.stderr)
        samples, failed = measure.step_rounds(place, calls.STEPS, arguments.sets, arguments.steps)
        rows += table.rows_of(place, calls.STEPS, samples)
        errors.update(failed)
    print("activation and interpreter start", file=sys.stderr)
    return {
        "about": about(),
        "rows": rows,
        "errors": errors,
        "not_timed": sorted({t for t in patched() if t.startswith(("torch:", "torch.fft:")) and t not in timed}),
        "activation": startup.activation(arguments.starts),
        "interpreter": startup.interpreter(arguments.pairs),
    }


def main(words: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sets", type=int, default=3, help="fresh interpreters of each way (default: 3)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of calls in each (default: 15)")
    parser.add_argument("--steps", type=int, default=40, help="rounds of training steps in each (default: 40)")
    parser.add_argument("--piece", type=float, default=0.002, help="seconds of one piece (default: 0.002)")
    parser.add_argument("--starts", type=int, default=7, help="activations of each way (default: 7)")
    parser.add_argument("--pairs", type=int, default=60, help="starts of the interpreter of each kind (default: 60)")
    parser.add_argument("--output", type=Path, default=HERE, help="directory for results.md and history.json")
    parser.add_argument("--readme", action="store_true", help="put the last table into the READMEs; measure nothing")
    arguments = parser.parse_args(words)
    results_file, history_file = arguments.output / "results.md", arguments.output / "history.json"
    if arguments.readme:
        for readme in (measure.ROOT / name for name in READMES):
            if readme.exists() and not table.refresh(readme, results_file):
                print(f"{readme.name} has no {table.BEGIN} ... {table.END}; left as it is.", file=sys.stderr)
        return 0
    results = collect(arguments)
    results_file.write_text(table.render(results), encoding="utf-8")
    history = json.loads(history_file.read_text(encoding="utf-8")) if history_file.exists() else []
    history_file.write_text(json.dumps([*history, results], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    missed = [f"{r['place']}: {r['what']}" for r in results["rows"] if r["reached"] is False]
    print(table.short(results))
    print(f"Not within the limit: {', '.join(missed) or 'none'}.", file=sys.stderr)
    return 0
