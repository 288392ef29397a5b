"""The ways in: each switches on where it is asked for, and nothing is felt where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

import flagos_shim

PACKAGE = Path(flagos_shim.__file__).parent
LIBRARY = Path(sysconfig.get_path("purelib"))
PRETEND = Path(__file__).resolve().parent.parent / "pretend"

# What a program sees that has named nothing but `cuda`.
SEEN = """
import json, os, sys, torch
print(json.dumps({
    "cuda": str(torch.device("cuda")),
    "zeros": torch.zeros(2, device="cuda:0").device.type,
    "waiting": sys.modules["flagos_shim"].status()["waiting"],
    "autoload": os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD"),
    "backend": os.environ.get("FLAGOS_DEVICE_BACKEND"),
    "set_aside": sys.modules["flagos_shim"].status()["autoload_set_aside"],
    "loader": type(torch.__spec__.loader).__name__, "same": torch.__loader__ is torch.__spec__.loader,
}))
"""
ON = {"waiting": False, "autoload": None, "loader": "SourceFileLoader", "same": True}
ON_CPU = {**ON, "cuda": "cpu", "zeros": "cpu", "backend": "cpu", "set_aside": True}
# torch_npu sets the variable by itself to what it takes for its default.
ON_ASCEND = {**ON, "autoload": "1", "cuda": "npu", "zeros": "npu", "backend": "ascend", "set_aside": True}
DETECTED = "`cuda` means cpu (CPU), detected.\n"

# torch as it is without this package, which may not even be imported.
UNTOUCHED = """
import sys, torch
assert not [n for n in sys.modules if n.partition(".")[0] == "flagos_shim"], "imported"
assert str(torch.device("cuda")) == "cuda" and "__new__" in vars(torch.device)
assert type(torch.zeros).__name__ == type(torch.device.__new__).__name__ == "builtin_function_or_method"
print("untouched")
"""


@pytest.mark.parametrize(("backend", "expected"), [("cpu", ON_CPU), ("ascend", ON_ASCEND)])
def test_the_variable_alone(run_isolated: Any, backend: str, expected: dict[str, Any]) -> None:
    done = run_isolated(SEEN, backend=backend)
    assert done.json == expected
    assert "flagos" not in done.stderr


def test_no_variable_no_change(run_isolated: Any) -> None:
    env = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # the half-installed torch_npu would fail by itself
    assert run_isolated(UNTOUCHED, backend=None, env=env).ok().stdout == "untouched\n"
    assert run_isolated(UNTOUCHED, backend="", env=env).ok().stdout == "untouched\n"


def test_the_import_before_torch_and_after(run_isolated: Any) -> None:
    before = run_isolated("import flagos_shim" + SEEN, backend=None)
    assert before.json == ON_CPU and before.stderr == DETECTED
    env = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    after = run_isolated("import torch; early = torch.zeros; import flagos_shim" + SEEN, backend=None, env=env)
    assert after.json == {**ON_CPU, "autoload": "0", "set_aside": False} and after.stderr == DETECTED


def test_the_import_of_the_plugin_before_torch(run_isolated: Any) -> None:
    code = "import torch_npu; assert torch_npu.__spec__.loader.get_source" + SEEN
    assert run_isolated(code, backend="ascend").json == ON_ASCEND


def test_asking_whether_a_plugin_is_installed_imports_and_activates_nothing(run_isolated: Any) -> None:
    code = """
import importlib.util, sys
from flagos_shim.vendors import PLUGINS
print([name for name in PLUGINS if importlib.util.find_spec(name) is not None])
assert not {"torch", "flagos_shim._activation", *PLUGINS} & set(sys.modules)
import torch
assert sys.modules["flagos_shim"].status()["backend"] == "cpu"
"""
    # The plugins of the two pretend vendors, and torch_npu, which without CANN cannot be imported.
    env = {"PYTHONPATH": str(PRETEND)}
    found = run_isolated(code, backend="cpu", env=env).ok().stdout
    assert "torch_npu" in found and "torch_mlu" in found and "torch_gcu" not in found


PROVIDER = """
import importlib.machinery, importlib.util, sys

class Once:
    # Answers one look for the plugin, as a provider does that must not stand in its own way.
    def find_spec(self, name, path=None, target=None):
        if name != "torch_mlu":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            module.provided = "torch" in sys.modules
        spec.loader.exec_module = exec_module
        return spec

assert importlib.util.find_spec("torch_mlu") is not None and "torch" not in sys.modules
sys.meta_path.insert(0, Once())
"""


def test_a_provider_of_the_plugin_that_answers_once_is_asked_by_its_import(run_isolated: Any, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PROVIDER)
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(PRETEND)])}
    code = "import torch, sys; print(torch.zeros(2, device='cuda').device, sys.modules['torch_mlu'].provided)"
    assert run_isolated(code, backend="mlu", env=env).ok().stdout == "mlu:0 True\n"
    flags = ("-m", "flagos_shim")
    assert run_isolated(code, backend="mlu", env=env, flags=flags).ok().stdout == "mlu:0 True\n"


@pytest.mark.parametrize("variable", ["FLAGOS_DEVICE_BACKEND", "FLAGOS_SHIM_REHEARSE"])
def test_an_interpreter_that_does_not_import_torch_does_not_feel_it(run_isolated: Any, variable: str) -> None:
    code = "import sys; print('\\n'.join(sorted(sys.modules)))"
    plain = run_isolated(code, backend=None)
    asked = run_isolated(code, backend=None, env={variable: "ascend"})
    assert plain.stderr == asked.stderr == ""
    assert not [name for name in plain.ok().stdout.split() if "flagos" in name]
    extra = set(asked.ok().stdout.split()) - set(plain.stdout.split())
    assert {name for name in extra if not name.startswith("flagos_shim")} <= {"__future__"}


def test_what_is_wrong_with_the_variables_is_not_said_before_torch_is_imported(run_isolated: Any) -> None:
    env = {"FLAGOS_SHIM_REHEARSE": "nonsense", "FLAGOS_LOG_LEVEL": "nonsense"}
    done = run_isolated("print('ran')", backend="nonsense", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with no start-up hook: the libraries are on PYTHONPATH, whose ``.pth`` files nobody reads."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "env", symlinks=True, with_pip=False)
    (folder / "libraries").mkdir()
    for entry in LIBRARY.iterdir():
        if entry.suffix != ".pth" and not entry.name.startswith(("flagos_shim", "torch_npu-")):
            (folder / "libraries" / entry.name).symlink_to(entry)
    (folder / "plugin").mkdir()
    for entry in LIBRARY.glob("torch_npu-*"):
        (folder / "plugin" / entry.name).symlink_to(entry)
    (folder / "installed").mkdir()
    for entry in (PACKAGE, *LIBRARY.glob("flagos_shim-*.dist-info")):
        (folder / "installed" / entry.name).symlink_to(entry)
    return folder


def run_bare(bare: Path, args: list[str], *folders: str, **env: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FLAGOS", "TORCH", "PYTHON"))}
    path = [folder if os.path.isabs(folder) else str(bare / folder) for folder in (*folders, "libraries")]
    environ.update(OMP_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(path), **env)
    return subprocess.run(
        [str(bare / "env" / "bin" / "python"), *args],
        env=environ,
        input="",
        capture_output=True,
        text=True,
        timeout=240,
    )


def seen(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr[-4000:]
    return __import__("json").loads(done.stdout.splitlines()[-1])


def test_torchs_entry_point_alone(bare: Path) -> None:
    done = run_bare(bare, ["-c", SEEN], "installed", FLAGOS_DEVICE_BACKEND="cpu")
    assert seen(done) == {**ON_CPU, "set_aside": False} and done.stderr == ""
    # Unasked, the entry point has been called, and that is all.
    untouched = UNTOUCHED.replace("assert not [n", "assert [n")
    assert run_bare(bare, ["-c", untouched], "installed").stdout == "untouched\n"


def test_torchs_entry_point_alone_with_a_plugin(bare: Path) -> None:
    env = {"FLAGOS_DEVICE_BACKEND": "ascend", "FLAGOS_SHIM_REHEARSE": "ascend"}
    assert seen(run_bare(bare, ["-c", SEEN], "installed", "plugin", **env)) == {**ON_ASCEND, "set_aside": False}


def test_a_line_in_sitecustomize(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import flagos_shim\n")
    assert seen(run_bare(bare, ["-c", SEEN], str(tmp_path), str(PACKAGE.parent), FLAGOS_DEVICE_BACKEND="cpu")) == ON_CPU
    light = run_bare(bare, ["-c", "import sys; print('torch' in sys.modules)"], str(tmp_path), str(PACKAGE.parent))
    assert light.stdout == "False\n" and light.stderr == ""


def test_the_launcher_from_a_source_tree_beside_another_sitecustomize(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.mine = 'ran'\n")
    child = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    script = "import sitecustomize, sys\nassert sys.mine == 'ran' and sitecustomize.__file__ == sys.argv[1]\n"
    command = ["-m", "flagos_shim", "--backend", "cpu", "-c"]
    folders = (str(PACKAGE.parent), str(tmp_path))
    done = run_bare(bare, [*command, script + SEEN, str(tmp_path / "sitecustomize.py")], *folders)
    assert seen(done) == ON_CPU
    assert seen(run_bare(bare, [*command, child, SEEN], *folders)) == ON_CPU


def test_the_sitecustomize_of_a_source_tree_fails_as_pythons_own_would(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    plain = run_bare(bare, ["-c", "print(1)"], str(tmp_path), str(PACKAGE.parent))
    ours = run_bare(
        bare, ["-m", "flagos_shim", "--backend", "cpu", "-c", "print(1)"], str(PACKAGE.parent), str(tmp_path)
    )
    assert plain.stdout == ours.stdout == "1\n"
    assert plain.stderr in ours.stderr and "ValueError: mine" in plain.stderr


# The launcher beside python itself.  Nothing here needs torch; the last test has it.

PROBE = """
import json, sys, __main__
class Point:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(self) is type(other) and self.x == other.x
import pickle
assert pickle.loads(pickle.dumps(Point(3))) == Point(3) and __main__.Point is Point
print(json.dumps({
    "name": __name__, "file": globals().get("__file__"), "argv": sys.argv, "path": sys.path, "flags": str(sys.flags),
    "warn": sys.warnoptions, "x": dict(sys._xoptions),
    "spec": getattr(globals().get("__spec__"), "name", None),
    "package": globals().get("__package__"), "main": sorted(vars(__main__)), "stdin": sys.stdin.read(),
    "modules": sorted(n for n in sys.modules if not n.startswith("flagos_shim")), "debug": __debug__,
}))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with the probe as script, module, package, folder and archive."""
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    for name in ("__main__.py", "part.py"):
        (tmp_path / "package" / name).write_text(PROBE)
    return tmp_path


def both(
    run_isolated: Any, flags: list[str], *words: str, cwd: Path, before: bool = True, **options: Any
) -> tuple[Any, Any]:
    """The same by python itself and by the launcher, its interpreter's options before or after ``-m flagos_shim``."""
    options.setdefault("backend", "cpu")
    plain = run_isolated(None, flags=[*flags, *words], cwd=cwd, **options)
    launcher = [*flags, "-m", "flagos_shim", *words] if before else ["-m", "flagos_shim", *flags, *words]
    return plain, run_isolated(None, flags=launcher, cwd=cwd, **options)


@pytest.mark.parametrize(
    "words",
    [
        ("probe.py", "a", "--backend", "b", "-m"),
        ("./probe.py",),
        ("-m", "probe", "a", "-c"),
        ("-m", "package"),
        ("-m", "package.part", "x"),
        ("package",),
        ("-c", PROBE, "a", "-h"),
        ("-", "a"),
    ],
    ids=lambda words: " ".join(word if len(word) < 20 else "CODE" for word in words),
)
def test_a_program_sees_what_it_sees_under_python(run_isolated: Any, program: Path, words: tuple[str, ...]) -> None:
    stdin = PROBE if words[0] == "-" else "some\ninput"
    plain, ours = both(run_isolated, [], *words, cwd=program, stdin=stdin)
    assert ours == plain and plain.json["name"] == "__main__"


def test_a_program_from_stdin(run_isolated: Any, program: Path) -> None:
    plain, ours = both(run_isolated, [], cwd=program, stdin=PROBE)
    assert ours == plain and plain.json["argv"] == [""]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    "flags",
    [["-u"], ["-O"], ["-W", "error"], ["-X", "dev"], ["-OO", "-B", "-W", "ignore::UserWarning", "-X", "utf8"], ["-P"]],
)
def test_pythons_own_options(run_isolated: Any, program: Path, flags: list[str], before: bool) -> None:
    if flags == ["-P"] and sys.version_info < (3, 11):
        flags = ["-q"]
    plain, ours = both(run_isolated, flags, "probe.py", "a", cwd=program, before=before)
    assert ours == plain and plain.ok()


ENDINGS = {
    "code": "import sys; sys.exit(3)",
    "text": "import sys; sys.exit('a reason')",
    "none": "import sys; sys.exit()",
    "at once": "import os; os._exit(7)",
    "exception": "def f(x):\n    return 1 / x\n\nf(0)",
    "chained": "try:\n    {}['x']\nexcept KeyError as e:\n    raise ValueError('because') from e",
    "syntax": "x = (1,\n",
    "interrupt": "raise KeyboardInterrupt",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "warning": "import warnings; warnings.warn('careful')",
    "at exit": "import atexit, sys; atexit.register(print, 'bye'); sys.exit(4)",
    "excepthook": "import sys; sys.excepthook = lambda *e: print('hook', e[0].__name__); raise ValueError",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_as_under_python(run_isolated: Any, tmp_path: Path, ending: str) -> None:
    (tmp_path / "script.py").write_text(ENDINGS[ending])
    plain, ours = both(run_isolated, [], "script.py", cwd=tmp_path)
    assert ours == plain


@pytest.mark.parametrize("words", [("gone.py", "a"), ("-m", "gone"), ("-m", "package_gone.part"), ("-Z",), ("-c",)])
def test_what_is_not_there_is_pythons_own_message(run_isolated: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    plain, ours = both(run_isolated, [], *words, cwd=tmp_path)
    assert ours == plain and plain.returncode in (1, 2) and plain.stderr
    assert words[0] != "gone.py" or (plain.returncode == 2 and "No such file or directory" in plain.stderr)


def test_signals_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, time\n"
        "try:\n    print(os.getpid(), flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n    raise\n"
    )
    environ = {**os.environ, "FLAGOS_DEVICE_BACKEND": "cpu"}
    for signal, printed in ((2, "interrupted\n"), (15, "")):
        process = subprocess.Popen(
            [sys.executable, "-m", "flagos_shim", "script.py"],
            cwd=tmp_path,
            env=environ,
            stdout=-1,
            stderr=-1,
            text=True,
        )
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid, "the program has the process that was started"
        process.send_signal(signal)
        assert process.communicate(timeout=30)[0] == printed
        assert process.returncode == -signal


def test_the_program_is_switched_on_and_the_launcher_is_not(run_isolated: Any, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SEEN)
    done = run_isolated(None, flags=["-m", "flagos_shim", "--backend", "cpu", "train.py"], backend=None, cwd=tmp_path)
    assert done.json == ON_CPU and done.stderr == ""
    done = run_isolated(None, flags=["-m", "flagos_shim", "train.py"], backend=None, cwd=tmp_path)
    assert done.json == ON_CPU and done.stderr == DETECTED
    done = run_isolated(
        None, flags=["-m", "flagos_shim", "--rehearse", "ascend", "train.py"], backend=None, cwd=tmp_path
    )
    assert done.json == ON_ASCEND


def test_a_profiler_around_the_launcher_profiles_the_program(run_isolated: Any, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def work():\n    return 1\n\nwork()\n")
    done = run_isolated(None, flags=["-m", "cProfile", "-m", "flagos_shim", "script.py"], backend="cpu", cwd=tmp_path)
    assert "script.py:1(work)" in done.ok().stdout
