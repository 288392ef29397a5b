"""Results as Markdown: ``results.md``, and the short table that the READMEs show between two markers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import measure
from .calls import LIMITS, Call
from .measure import Samples

BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
HEAD = "| what | native | shim | peer | to reach | reached |\n|---|---|---|---|---|---|\n"

ACTIVATION, HOOK = 0.10, 0.001


def rows_of(place: str, rows: Sequence[Call], samples: Samples) -> list[dict[str, Any]]:
    """What was measured of each row, as plain data in seconds; None where a way could not do it."""
    found = []
    for row in rows:
        times = samples[row.expression]
        if "native" not in times or "shim" not in times:
            continue
        value = measure.ratio if row.kind == "ratio" else measure.extra
        shim, limit = value(times, "shim"), LIMITS.get(row.kind)
        judged = limit is not None and not (row.kernel and place == "ascend")
        found.append(
            {
                "what": row.what, "kind": row.kind, "main": row.main, "place": place,
                "native": statistics.median(times["native"]), "shim": shim, "peer": value(times, "peer"),
                "limit": limit if judged else None, "reached": shim <= limit if judged and shim is not None else None,
            }
        )  # fmt: skip
    return found


def _microseconds(seconds: float | None, sign: str = "+") -> str:
    return "" if seconds is None else f"{seconds * 1e6:{sign}.2f} µs"


def _line(row: dict[str, Any]) -> str:
    reached = "" if row["reached"] is None else "yes" if row["reached"] else "no"
    if row["kind"] == "ratio":
        shim, peer = (f"× {v:.3f}" if v is not None else "" for v in (row["shim"], row["peer"]))
        return f"| {row['what']} | {row['native'] * 1e3:.1f} ms | {shim} | {peer} | ≤ × {row['limit']} | {reached} |\n"
    limit = "" if row["limit"] is None else f"≤ {_microseconds(row['limit'])}"
    native, shim, peer = _microseconds(row["native"], ""), _microseconds(row["shim"]), _microseconds(row["peer"])
    return f"| {row['what']} | {native} | {shim} | {peer} | {limit} | {reached} |\n"


def _start(results: dict[str, Any]) -> str:
    start, hook = results["activation"], results["interpreter"]
    shim, peer, cpu = start["ascend/shim"], start["ascend/peer"], start["cpu/shim"]
    plain, limit = f"{hook['plain'] * 1e3:.1f} ms", f"≤ +{ACTIVATION:.2f} s"
    shim_s, peer_s, cpu_s = (f"+{found['seconds']:.3f} s" for found in (shim, peer, cpu))
    shim_b, peer_b = (f"+{found['memory'] / 2**20:.1f} MiB" for found in (shim, peer))
    unused, asked = (f"{hook[name] * 1e3:+.2f} ms" for name in ("unused", "asked"))
    lines: list[tuple[str, str, str, str, str, bool | None]] = [
        ("activation, on top of torch and plugin", "", shim_s, peer_s, limit, shim["seconds"] <= ACTIVATION),
        ("activation, on top of plain CPU torch", "", cpu_s, "", limit, cpu["seconds"] <= ACTIVATION),
        ("`python -c pass`, hook installed, not asked for", plain, unused, "", "≤ +1 ms", hook["unused"] <= HOOK),
        ("`python -c pass`, asked for", plain, asked, "", "", None),
        ("memory, on top of torch and plugin", "", shim_b, peer_b, "", None),
    ]
    verdict = {True: "yes", False: "no", None: ""}
    return "".join(f"| {' | '.join(cells)} | {verdict[reached]} |\n" for *cells, reached in lines)


def short(results: dict[str, Any]) -> str:
    """The table for the READMEs."""
    rows = [row for row in results["rows"] if row["main"] and row["place"] == "ascend"]
    return HEAD + "".join(_line(row) for row in rows) + _start(results)


def render(results: dict[str, Any]) -> str:
    """The whole of ``results.md``."""
    about = results["about"]
    parts = [
        "# Benchmarks\n\nWritten by `make bench`; do not edit.\n\n",
        f"{about['date']}, {about['machine']}, CPython {about['python']}, torch {about['torch']}, "
        f"torch_npu {about['torch_npu']}, flagos_shim {about['flagos_shim']}; load average {about['load']}.\n\n",
        "Three ways by turns in one run on the rehearsed Ascend (the real torch_npu, host memory for the chip): the "
        "plugin's own names, the shim, and the peer, `from torch_npu.contrib import transfer_to_npu`. `native` is the "
        "time of the call with the plugin's own name; `shim` and `peer` are what they take on top of it, medians over "
        "the rounds of what the same round gave. A step is given as the ratio of the processor time under the shim to "
        "that without it, by turns in one interpreter; activation and the start of the interpreter as processor time. "
        "`module.to` and `autocast` call several patched functions and have no limit. The two floor rows are a Python "
        "function that does nothing but hand its arguments on: no stand-in can take less, and what the shim's do on "
        "top of it is one look for the keyword `device`. A row above its limit by no more than the floor rows of two "
        "runs differ is noise.\n\n",
        f"{BEGIN}\n{short(results)}{END}\n",
    ]
    sections = {
        "ascend": "## Every row on the rehearsed Ascend\n\nRows without a limit run kernels of the rehearsal, which "
        "are Python and call patched functions themselves; they are judged on plain CPU torch below.\n\n",
        "cpu": "## Every row on plain CPU torch\n\n`cuda` against `cpu`.\n\n",
    }
    for place, title in sections.items():
        rows = [row for row in results["rows"] if row["place"] == place]
        reached = [row["reached"] for row in rows if row["reached"] is not None]
        parts.append(f"\n{title}{sum(reached)} of {len(reached)} rows within their limit.\n\n{HEAD}")
        parts.extend(_line(row) for row in rows)
    if results["errors"]:
        parts.append("\n## What a way could not do\n\n| call | error |\n|---|---|\n")
        for what, error in results["errors"].items():
            parts.append(f"| `{what}` | {error[:100].replace('|', '/')} |\n")
    if results["not_timed"]:
        parts.append(
            "\n## Patched and not timed\n\nThese need more than a small argument, are torch's own private functions, "
            "or change the state of the process: " + ", ".join(f"`{target}`" for target in results["not_timed"]) + ".\n"
        )
    return "".join(parts)


def marked(text: str) -> str | None:
    """What stands between the markers of ``text``; None where it has none."""
    if BEGIN not in text or END not in text:
        return None
    return text.partition(BEGIN)[2].partition(END)[0].strip("\n")


def refresh(readme: Path, results: Path) -> bool:
    """Put the short table of ``results.md`` between the markers of a README; False where that has none."""
    text, table = readme.read_text(encoding="utf-8"), marked(results.read_text(encoding="utf-8"))
    if marked(text) is None or table is None:
        return False
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    readme.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return True
