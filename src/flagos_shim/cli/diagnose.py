"""``flagos-diagnose``: every step from device file to first tensor, each failure with its remedy; never hangs."""

from __future__ import annotations

import argparse
import dataclasses
import glob
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from .. import _startup, registry
from ..failures import FlagosShimError
from ..vendor import Vendor
from . import _output, explain

# Seconds that one step in a process of its own may take; a sick driver makes an import or a first tensor hang.
_LIMIT = 120.0

_TENSOR = (
    "import torch; x = torch.ones(2, device='cuda') + 1; torch.cuda.synchronize(); "
    "print(x.device, torch.cuda.device_count(), torch.cuda.get_device_name(0))"
)


@dataclasses.dataclass(frozen=True)
class Step:
    """One step: ``state`` is OK, WARN or FAIL; a FAIL or WARN has a ``remedy``."""

    name: str
    state: str
    detail: str
    remedy: str = ""
    output: str = ""


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _device_files(vendor: Vendor, rehearsed: bool) -> Step:
    found = sorted(name for pattern in vendor.probe.files for name in glob.glob(pattern))
    patterns = ", ".join(vendor.probe.files)
    if found:
        return Step("device files", "OK", f"{len(found)} found: {', '.join(found[:8])}")
    if rehearsed:
        return Step("device files", "OK", "none needed: the plugin is rehearsed on host memory")
    return Step(
        "device files",
        "FAIL",
        f"none match {patterns}",
        "Load the vendor's driver; in a container pass the device files through (e.g. --device).",
    )


def _sdk(vendor: Vendor) -> Step:
    found = {name: os.environ[name] for name in vendor.probe.home if os.environ.get(name)}
    gone = [f"{name}={path}" for name, path in found.items() if not os.path.exists(path)]
    remedy = f"Install the vendor's SDK and source its environment, which sets {' and '.join(vendor.probe.home)}."
    if gone:
        return Step("sdk", "WARN", f"{', '.join(gone)}: there is no such directory", remedy)
    if found:
        return Step("sdk", "OK", ", ".join(f"{name}={path}" for name, path in found.items()))
    return Step("sdk", "WARN", f"{' and '.join(vendor.probe.home)} unset", remedy)


def _driver(vendor: Vendor, rehearsed: bool) -> Iterator[Step]:
    if rehearsed or vendor.read("telemetry") is None:
        return
    from .._smi import State, cached_read

    reading = cached_read(vendor.read("telemetry"))
    if reading.state is State.OK:
        names = ", ".join(f"{chip.index}: {chip.name} {chip.health or ''}".strip() for chip in reading.chips)
        yield Step("driver", "OK", f"{reading.tool} lists {len(reading.chips)} chips ({names})")
    else:
        state = "WARN" if reading.state is State.MISSING else "FAIL"
        yield Step(
            "driver",
            state,
            f"{reading.tool}: {reading.state.name.lower()}: {reading.detail}",
            f"Run {reading.tool} by hand; reinstall the driver where it fails, put it on PATH where it is missing.",
        )


def _packages(vendor: Vendor) -> Iterator[Step]:
    torch = _version("torch")
    if torch is None:
        yield Step("torch", "FAIL", "not installed", "pip install torch")
        return
    yield Step("torch", "OK", torch)
    if vendor.package is None:
        return
    if not registry.is_installed(vendor):
        remedy = (
            f"pip install {vendor.requirement}" if vendor.requirement else f"Install the vendor's {vendor.package}."
        )
        yield Step("plugin", "FAIL", f"{vendor.package} is not installed in {sys.prefix}", remedy)
        return
    plugin = _version(vendor.package.replace("_", "-"))
    short = [".".join(v.partition("+")[0].split(".")[:2]) for v in (torch, plugin or "")]
    if vendor.plugin_follows_torch and plugin is not None and short[0] != short[1]:
        yield Step(
            "plugin",
            "FAIL",
            f"{vendor.package} {plugin} is for torch {short[1]}, installed is torch {torch}",
            f"pip install '{vendor.requirement or vendor.package}=={short[0]}.*', or the torch that the plugin is for.",
        )
        return
    if vendor.recommended_torch not in (None, short[0]):
        yield Step(
            "plugin",
            "WARN",
            f"{vendor.package} {plugin or '(version unknown)'}: its names are attested with torch "
            f"{vendor.recommended_torch}, installed is torch {torch}",
            f"pip install 'torch=={vendor.recommended_torch}.*', unless this build of the plugin is for {torch}.",
        )
        return
    yield Step("plugin", "OK", f"{vendor.package} {plugin or '(version unknown)'}")


def _run(name: str, code: str, environ: dict[str, str], remedy: str) -> Step:
    """One step in a process of its own, with a time limit."""
    try:
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return Step(
            name, "FAIL", f"no answer within {_LIMIT:.0f} s", "The driver or the chip hangs: check it, reset it."
        )
    lines = [line for line in run.stderr.splitlines() if line.strip()]
    if run.returncode == 0:
        return Step(name, "OK", run.stdout.strip() or "done", output=run.stderr)
    return Step(name, "FAIL", lines[-1] if lines else f"exit code {run.returncode}", remedy, run.stderr)


def diagnose(vendor: Vendor) -> list[Step]:
    """All steps for one vendor, in order; those that start a device run in processes of their own."""
    rehearsed = os.environ.get("FLAGOS_SHIM_REHEARSE") == vendor.name
    steps: list[Step] = []
    if vendor.probe.files:
        steps.append(_device_files(vendor, rehearsed))
    if vendor.probe.home and not rehearsed:
        steps.append(_sdk(vendor))
    steps.extend(_driver(vendor, rehearsed))
    steps.extend(_packages(vendor))
    if any(step.state == "FAIL" and step.name in ("torch", "plugin") for step in steps):
        return steps
    bare = {k: v for k, v in os.environ.items() if k != "FLAGOS_DEVICE_BACKEND"}
    if vendor.package is not None and not rehearsed:
        sdk = f"Install the vendor's SDK and set its environment ({vendor.probe.library} is looked for)."
        steps.append(
            _run(
                "plugin import",
                f"import torch, {vendor.package}; print('imported')",
                {**bare, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
                sdk,
            )
        )
        if steps[-1].state == "FAIL":
            return steps
    steps.append(
        _run(
            "first tensor",
            _TENSOR,
            {**os.environ, "FLAGOS_DEVICE_BACKEND": vendor.name},
            "Read the message; `flagos-diagnose --explain CODE` explains the vendor's code in it.",
        )
    )
    return steps


def _lines(vendor: Vendor, steps: Sequence[Step], verbose: bool) -> Iterator[str]:
    yield f"{vendor.name}: {vendor.title}"
    for step in steps:
        yield f"[{step.state}] {step.name}: {step.detail}"
        if step.remedy:
            yield f"       remedy: {step.remedy}"
        if verbose and step.output:
            yield "       " + step.output.rstrip().replace("\n", "\n       ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the steps; exit code 0 where none failed, 1 where one did, 2 for wrong arguments."""
    _startup.withdraw()
    parser = argparse.ArgumentParser("flagos-diagnose", description=__doc__)
    parser.add_argument(
        "--backend", metavar="NAME", help="the back end; default: FLAGOS_DEVICE_BACKEND, else all installed"
    )
    parser.add_argument("--verbose", action="store_true", help="print what failing steps wrote")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--explain",
        metavar=("CODE|TEXT|-", "WORD"),
        nargs="*",
        help="explain a vendor's error code, a text of an error, or a log from standard input (-)",
    )
    options = parser.parse_args(arguments)
    if options.explain is not None:
        return explain.main(options.explain, options.format)
    name = options.backend or os.environ.get("FLAGOS_DEVICE_BACKEND")
    try:
        if name and name.lower() != "auto":
            chosen = [registry.resolve(name)]
        else:
            every = registry.vendors().values()
            chosen = [v for v in every if v.package is not None and registry.is_installed(v)] or [
                registry.resolve("cpu")
            ]
    except FlagosShimError as error:
        print(f"flagos-diagnose: error: {error}", file=sys.stderr)
        return 2
    found = {vendor.name: diagnose(vendor) for vendor in chosen}
    if options.format == "json":
        _output.write(json.dumps({n: [dataclasses.asdict(s) for s in steps] for n, steps in found.items()}, indent=2))
    else:
        _output.write(
            "\n".join(line for vendor in chosen for line in _lines(vendor, found[vendor.name], options.verbose))
        )
    return int(any(step.state == "FAIL" for steps in found.values() for step in steps))


if __name__ == "__main__":
    sys.exit(main())
