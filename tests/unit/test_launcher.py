"""The launcher's own part: its options, what python is started with, and the hook where none is installed.

That the program then runs as under python itself is shown in contract/test_start_up.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from flagos_shim import __version__, _launcher
from flagos_shim.rehearse import OPTIONS


def split(*words: str) -> tuple[dict[str, Any], list[str]]:
    options, program = _launcher._split(list(words), _launcher._parser())
    return {name: value for name, value in vars(options).items() if value is not None}, program


@pytest.mark.parametrize(
    ("words", "options", "program"),
    [
        ((), {}, []),
        (("train.py",), {}, ["train.py"]),
        (("--backend", "cpu", "train.py", "--backend", "x"), {"backend": "cpu"}, ["train.py", "--backend", "x"]),
        (("--backend=cpu", "-m", "pkg.mod", "--version"), {"backend": "cpu"}, ["-m", "pkg.mod", "--version"]),
        (("--rehearse", "ascend", "-c", "print(1)", "-h"), {"rehearse": "ascend"}, ["-c", "print(1)", "-h"]),
        (("-u", "-W", "error", "--backend", "cpu"), {}, ["-u", "-W", "error", "--backend", "cpu"]),
        (("-",), {}, ["-"]),
        (("--back", "cpu"), {}, ["--back", "cpu"]),
    ],
)
def test_our_options_stand_first_and_all_else_is_pythons(
    words: tuple[str, ...], options: dict[str, Any], program: list[str]
) -> None:
    assert split(*words) == (options, program)


def test_every_option_of_the_rehearsal_is_taken() -> None:
    words = [word for option in OPTIONS for word in (option.flag, "1")]
    options, program = split(*words, "train.py")
    assert options == {option.variable: "1" for option in OPTIONS} and program == ["train.py"]


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("-h",)])
def test_version_and_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        split(*words)
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert __version__ in printed if words == ("--version",) else "python -m flagos_shim [options]" in printed


@pytest.mark.parametrize(
    ("original", "arguments", "expected"),
    [
        (["python", "-m", "flagos_shim", "a.py", "1"], ["a.py", "1"], []),
        (["python", "-u", "-X", "dev", "-W", "error", "-m", "flagos_shim"], [], ["-u", "-X", "dev", "-W", "error"]),
        (["python", "-um", "flagos_shim", "a.py"], ["a.py"], ["-u"]),
        (["python", "-mflagos_shim", "a.py"], ["a.py"], []),
        (["python", "-OBmflagos_shim", "a.py"], ["a.py"], ["-OB"]),
        (["python", "-m", "flagos_shim.__main__", "a.py"], ["a.py"], []),
        (
            ["python", "-m", "cProfile", "-s", "time", "-m", "flagos_shim", "a.py"],
            ["a.py"],
            ["-m", "cProfile", "-s", "time"],
        ),
    ],
)
def test_the_interpreters_own_options_are_kept(
    original: list[str], arguments: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", original, raising=False)
    assert _launcher._interpreter_options(arguments) == expected


def test_before_python_3_10_they_come_from_the_flags(monkeypatch: pytest.MonkeyPatch, mocker: MockerFixture) -> None:
    monkeypatch.delattr(sys, "orig_argv", raising=False)
    mocker.patch("subprocess._args_from_interpreter_flags", return_value=["-O"])
    assert _launcher._interpreter_options(["a.py"]) == ["-O"]


def test_an_installed_hook_needs_nothing_else() -> None:
    environ = {"PYTHONPATH": "/somewhere"}
    _launcher._with_hook(environ)
    assert environ == {"PYTHONPATH": "/somewhere"}


@pytest.mark.parametrize("given", [None, "", "/a", f"/a{os.pathsep}{os.pathsep}/b"])
def test_without_one_a_sitecustomize_comes_first(given: str | None, mocker: MockerFixture, tmp_path: Path) -> None:
    mocker.patch("site.getsitepackages", return_value=[str(tmp_path)])
    mocker.patch("site.getusersitepackages", return_value=str(tmp_path))
    environ = {} if given is None else {"PYTHONPATH": given}
    _launcher._with_hook(environ)
    package = Path(_launcher.__file__).parent
    expected = [str(package / "_sitecustomize"), *(given.split(os.pathsep) if given else []), str(package.parent)]
    assert environ["PYTHONPATH"].split(os.pathsep) == expected
    _launcher._with_hook(environ)
    assert environ["PYTHONPATH"].split(os.pathsep) == expected, "a launcher within a launcher adds nothing"
