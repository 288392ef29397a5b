"""The launcher: sets the variables, then becomes ``python`` itself.

The interpreter is started anew in the same process (``exec``), and the start-up hook activates in it.  So the program
has python's own ``__main__``, ``sys.argv``, ``sys.path[0]``, exit code, traceback, signals, stdin and interactive mode,
and the children that it starts inherit the variables: none of that is imitated here.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import site
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import _startup, registry, rehearse
from ._version import __version__
from .failures import FlagosShimError
from .vendors import BUILTIN

_PACKAGE = pathlib.Path(__file__).resolve().parent
_HOOK = "flagos_shim_startup.pth"

_USAGE = """\
python -m flagos_shim [options] [python's own options] script.py [arguments]
       python -m flagos_shim [options] [python's own options] -m module [arguments]
       python -m flagos_shim [options] [python's own options] -c code [arguments]
       python -m flagos_shim [options] < script.py"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m flagos_shim",
        usage=_USAGE,
        allow_abbrev=False,
        description="Run a CUDA program on the back end that FLAGOS_DEVICE_BACKEND names, or on the one detected.",
    )
    parser.add_argument("--version", action="version", version=f"flagos_shim {__version__}")
    parser.add_argument("--backend", metavar="NAME", help=f"the back end: {', '.join(BUILTIN)} (FLAGOS_DEVICE_BACKEND)")
    parser.add_argument(
        "--rehearse",
        metavar="NAME",
        help="run the vendor's real plugin on host memory, without the chip: " + ", ".join(rehearse.KNOWN),
    )
    for option in rehearse.OPTIONS:
        parser.add_argument(
            option.flag, dest=option.variable, metavar="VALUE", help=f"{option.meaning} ({option.default})"
        )
    return parser


def _split(arguments: Sequence[str], parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[str]]:
    """Our own options stand first; from the first other word on, everything belongs to python."""
    takes_value = {name: action.nargs != 0 for action in parser._actions for name in action.option_strings}
    at = 0
    while at < len(arguments):
        name, equals, _ = arguments[at].partition("=")
        if name not in takes_value:
            break
        at += 1 if equals or not takes_value[name] else 2
    return parser.parse_args(arguments[:at]), list(arguments[at:])


def _interpreter_options(arguments: Sequence[str]) -> list[str]:
    """The options of the interpreter that runs this, without ``-m flagos_shim`` and what follows it."""
    original = getattr(sys, "orig_argv", None)
    if original is None:  # CPython 3.9
        return list(subprocess._args_from_interpreter_flags())  # type: ignore[attr-defined]
    head = list(original[1 : len(original) - len(arguments)])
    if head and head[-1] in ("flagos_shim", "flagos_shim.__main__"):
        head.pop()
    flag = head.pop() if head else "-m"
    flag = flag.partition("m")[0]
    return [*head, flag] if flag not in ("", "-") else head


def _with_hook(environ: dict[str, str]) -> None:
    """Where the wheel's start-up hook is not installed (a source tree on PYTHONPATH), a sitecustomize does its work."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    if any(os.path.exists(os.path.join(folder, _HOOK)) for folder in folders):
        return
    first, last = str(_PACKAGE / "_sitecustomize"), str(_PACKAGE.parent)
    given = environ.get("PYTHONPATH")
    path = [folder for folder in given.split(os.pathsep) if folder != first] if given else []
    environ["PYTHONPATH"] = os.pathsep.join([first, *path, *([] if last in path else [last])])


def _prepare(options: argparse.Namespace, environ: dict[str, str]) -> None:
    """Put the options into the environment, and raise early what would otherwise fail at ``import torch``."""
    if options.rehearse:
        environ["FLAGOS_SHIM_REHEARSE"] = options.rehearse
    for option in rehearse.OPTIONS:
        value = getattr(options, option.variable)
        if value is not None:
            environ[option.variable] = value
    rehearsed = environ.get("FLAGOS_SHIM_REHEARSE")
    if rehearsed:
        rehearse.check(rehearsed, environ)
    backend = options.backend or environ.get("FLAGOS_DEVICE_BACKEND")
    if backend and backend.lower() != "auto":
        vendor = registry.resolve(backend)
        registry.require(vendor)
        if options.rehearse and options.rehearse.lower() not in vendor.names:
            raise FlagosShimError(
                f"--rehearse {options.rehearse} and the back end {vendor.name!r} do not go together: rehearse the back "
                "end that the program is to run on, or leave one of the two out."
            )
    environ["FLAGOS_DEVICE_BACKEND"] = backend or "auto"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Become ``python`` with the program; exits with 2 where the options or the environment are wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _startup.withdraw()
    options, program = _split(arguments, _parser())
    environ = dict(os.environ)
    try:
        _prepare(options, environ)
    except FlagosShimError as error:
        print(f"flagos_shim: error: {error}", file=sys.stderr)
        sys.exit(2)
    _with_hook(environ)
    command = [sys.executable, *_interpreter_options(arguments), *program]
    if os.name == "nt":  # exec there returns to the shell before the program has ended
        sys.exit(subprocess.call(command, env=environ))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environ)
