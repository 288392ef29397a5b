"""Running a vendor's tool: its three failures, its time limit, and what it leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Callable

import pytest
from pytest_mock import MockerFixture

from flagos_shim import _smi, _smi_process
from flagos_shim._smi import Chip, Output, Reading, SmiFormatError, SmiReader, State, read

SRC = str(Path(_smi.__file__).parents[1])


def say(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
    """One chip for each line that any command printed, named by it."""
    return tuple(Chip(name=line) for output in outputs for line in output.text.splitlines())


def names(reading: Reading) -> list[str | None]:
    assert reading.state is State.OK, reading.detail
    return [chip.name for chip in reading.chips]


MakeTool = Callable[..., SmiReader]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTool:
    """Make an executable of a shell script on PATH, and a reader that runs it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(script: str, *arguments: str, interpreter: str = "/bin/sh") -> SmiReader:
        path = folder / "fake-smi"
        path.write_text(f"#!{interpreter}\n{script}\n")
        path.chmod(0o755)
        return SmiReader(commands=(("fake-smi", *arguments),), parse=say)

    return make


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but whose parent has not asked yet (not us: see `exists`) does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not come to pass")


def test_a_good_tool(tool: MakeTool) -> None:
    reader = tool('echo "$0 $*"; echo complaint >&2', "info", "a b", "$HOME;*")
    reading = read(reader)
    assert names(reading)[0] is not None and str(names(reading)[0]).endswith("fake-smi info a b $HOME;*"), "no shell"
    assert (reading.tool, reading.detail, reading.exit_code, reading.timed_out) == ("fake-smi", "", None, False)


def test_what_the_tool_gets(tool: MakeTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("KEPT", "kept")
    reader = tool('cat; echo "$LC_ALL $KEPT $EXTRA"; cut -d" " -f1,5,6 /proc/$$/stat')
    reader = SmiReader(reader.commands, reader.parse, environment=(("EXTRA", "extra"),))
    environment, process = names(read(reader))  # `cat` ended, so its input was closed
    assert environment == "C kept extra"
    assert process is not None and len(set(process.split())) == 1, "leader of a process group and session of its own"


def test_missing(tool: MakeTool) -> None:
    reader = SmiReader(commands=(("no-such-smi", "info"),), parse=say)
    reading = read(reader)
    assert (reading.state, reading.chips, reading.exit_code, reading.timed_out) == (State.MISSING, (), None, False)
    assert "no-such-smi was not found on PATH" in reading.detail


def test_not_executable_is_missing(tool: MakeTool, tmp_path: Path) -> None:
    reader = tool("echo")
    (tmp_path / "bin" / "fake-smi").chmod(0o644)
    assert read(reader).state is State.MISSING


def test_failed_with_an_exit_code(tool: MakeTool) -> None:
    reading = read(tool("echo preface; echo 'dcmi model initialized failed, ret is -8005'; echo; exit 7", "info"))
    assert (reading.state, reading.exit_code, reading.timed_out, reading.chips) == (State.FAILED, 7, False, ())
    assert reading.detail.startswith("`fake-smi info` ended with exit code 7")
    assert "dcmi model initialized failed, ret is -8005" in reading.detail and "preface" not in reading.detail


def test_failed_with_words_on_standard_error(tool: MakeTool) -> None:
    reading = read(tool("echo table; echo 'libdrvdsmi_host.so: cannot open shared object file' >&2; exit 127"))
    assert reading.exit_code == 127 and "libdrvdsmi_host.so" in reading.detail


def test_failed_without_a_word(tool: MakeTool) -> None:
    reading = read(tool("kill -SEGV $$"))
    assert (reading.state, reading.exit_code) == (State.FAILED, -11)
    assert "said: nothing" in reading.detail


def test_failed_to_start(tool: MakeTool) -> None:
    reading = read(tool("echo", interpreter="/no/such/interpreter"))
    assert (reading.state, reading.exit_code) == (State.FAILED, None)
    assert "could not be started" in reading.detail


def test_output_not_understood(tool: MakeTool) -> None:
    def refuse(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
        raise SmiFormatError("a table", outputs[0].text)

    reader = SmiReader(tool("head -c 100000 /dev/urandom | tr -d '\\n'; echo").commands, refuse)
    reading = read(reader)
    assert (reading.state, reading.chips, reading.exit_code) == (State.UNREADABLE, (), None)
    assert reading.line and len(reading.line) <= 300
    assert "expected a table" in reading.detail


def test_a_hanging_tool_is_killed_with_its_children(tool: MakeTool, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    reader = tool(f"trap '' TERM INT HUP; sleep 600 & echo $$ $! > {pids}; echo half a table; sleep 600; wait")
    reading = read(reader, timeout=0.6)
    assert (reading.state, reading.timed_out, reading.exit_code, reading.chips) == (State.FAILED, True, None, ())
    assert "was not done after" in reading.detail
    tool_pid, child_pid = map(int, pids.read_text().split())
    assert not exists(tool_pid), "killed and waited for: no zombie"
    wait_until(lambda: not alive(child_pid))


def test_a_tool_that_closes_its_outputs_and_hangs(tool: MakeTool, tmp_path: Path) -> None:
    reader = tool(f"echo $$ > {tmp_path}/pid; exec >&- 2>&-; sleep 600")
    reading = read(reader, timeout=0.6)
    assert reading.timed_out
    assert not exists(int((tmp_path / "pid").read_text()))


def test_the_limit_is_for_all_commands_together(tool: MakeTool) -> None:
    reader = tool('[ "$1" = quick ] || sleep 600')
    reader = SmiReader(commands=(("fake-smi", "quick"), ("fake-smi", "slow"), ("fake-smi", "slow")), parse=say)
    assert read(reader, timeout=0.5).timed_out


def test_a_tool_that_leaves_its_outputs_to_a_helper(tool: MakeTool, tmp_path: Path) -> None:
    reader = tool(f"sleep 600 & echo $! > {tmp_path}/pid; echo done")
    try:
        assert names(read(reader, timeout=60)) == ["done"]  # not after the helper's 600 s
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)


def test_endless_output_is_cut_off(tool: MakeTool, tmp_path: Path) -> None:
    reading = read(tool(f"echo $$ > {tmp_path}/pid; exec yes"), timeout=60)
    assert reading.state is State.FAILED and "printed more than" in reading.detail and not reading.timed_out
    assert not exists(int((tmp_path / "pid").read_text()))


def test_large_outputs_on_both_pipes_arrive_whole(tool: MakeTool) -> None:
    reader = tool("seq 20000; seq 20000 >&2; seq 20000")
    assert names(read(reader, timeout=60)) == [str(n) for n in range(1, 20001)] * 2


def test_a_tool_that_cannot_be_killed_is_waited_for_elsewhere(
    tool: MakeTool, tmp_path: Path, mocker: MockerFixture
) -> None:
    mocker.patch.object(_smi_process.os, "killpg")  # as for a process that is stuck in a driver
    mocker.patch.object(_smi_process, "_KILL_WAIT", 0.05)
    reading = read(tool(f"echo $$ > {tmp_path}/pid; exec sleep 2"), timeout=0.3)
    assert reading.timed_out
    reapers = [thread for thread in threading.enumerate() if thread.name == "flagos-smi-reaper"]
    assert len(reapers) == 1 and reapers[0].daemon
    reapers[0].join(60)
    assert not exists(int((tmp_path / "pid").read_text())), "no zombie once it does end"


def test_the_file_a_tool_writes(tool: MakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def written(outputs: tuple[Output, ...]) -> tuple[Chip, ...]:
        return tuple(Chip(name=output.written, bus_id=output.text.strip()) for output in outputs)

    commands = tool('[ "$1" = none ] || echo "written by $1" > out.json; pwd').commands
    reader = SmiReader((*commands, ("fake-smi", "none")), written, writes_file="out.json")
    first, second = read(reader).chips
    assert (first.name, second.name) == ("written by \n", None)
    assert list(here.iterdir()) == []
    assert first.bus_id != second.bus_id and not any(Path(str(chip.bus_id)).exists() for chip in (first, second))


def test_no_place_for_the_file(tool: MakeTool, mocker: MockerFixture) -> None:
    mocker.patch.object(_smi_process.tempfile, "mkdtemp", side_effect=OSError(28, "No space left on device"))
    reading = read(SmiReader(tool("echo").commands, say, writes_file="out.json"))
    assert reading.state is State.FAILED and "No space left on device" in reading.detail


def test_follow_up_commands_depend_on_the_first(tool: MakeTool) -> None:
    def more(outputs: tuple[Output, ...]) -> tuple[tuple[str, ...], ...]:
        return tuple(("fake-smi", "of", word) for word in outputs[0].text.split())

    commands = tool('if [ "$1" = of ]; then echo "$2 asked"; else echo 3 4; fi').commands
    assert names(read(SmiReader(commands, say, follow_up=more))) == ["3 4", "3 asked", "4 asked"]


def test_alternatives_stop_at_a_hanging_tool(tool: MakeTool, tmp_path: Path) -> None:
    tool(f'echo "$1" >> {tmp_path}/runs; [ "$1" = bad ] && exit 1; sleep 600')
    commands = (("fake-smi", "bad"), ("fake-smi", "slow"), ("fake-smi", "never"))
    reading = read(SmiReader(commands, say, alternatives=True), timeout=0.6)
    assert reading.timed_out
    assert (tmp_path / "runs").read_text().split() == ["bad", "slow"]


# What only a fresh interpreter can show.


def run_python(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": SRC, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout


PREAMBLE = """
import os, sys, threading, time
sys.path.insert(0, os.environ["PYTHONPATH"])
from flagos_shim import _smi
reader = _smi.SmiReader((("fake-smi",),), lambda outputs: (_smi.Chip(name=outputs[0].text.strip()),))
def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.02)
"""


def test_the_tool_does_not_outlive_the_interpreter(tool: MakeTool, tmp_path: Path) -> None:
    tool(f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 600")
    code = "threading.Thread(target=_smi.read, args=(reader,), kwargs={'timeout': 600}, daemon=True).start()"
    run_python(f"{PREAMBLE}\n{code}\nwait_for({str(tmp_path / 'pid')!r})")
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not alive(pid))


def test_a_fork_while_another_thread_reads(tool: MakeTool, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    tool(f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done; echo done")
    code = f"""
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
thread = threading.Thread(target=_smi.cached_read, args=(reader,), daemon=True)
thread.start()
wait_for({str(begun)!r})
pid = os.fork()
if pid == 0:
    open({str(go)!r}, "w").close()
    sys.stdout.write(_smi.cached_read(reader).chips[0].name)  # the lock of the other thread was copied locked
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
thread.join()
"""
    assert run_python(PREAMBLE + code) == "done"


def test_no_torch_is_imported() -> None:
    code = """
    import importlib, os, sys, types
    root = os.path.join(os.environ["PYTHONPATH"], "flagos_shim")
    for name, path in (("flagos_shim", root), ("flagos_shim.vendors", os.path.join(root, "vendors"))):
        package = types.ModuleType(name)  # without the package's own __init__, which may import what it likes
        package.__path__ = [path]
        sys.modules[name] = package
    for name in ("_npu_smi", "_cnmon", "_other_smi"):
        importlib.import_module(f"flagos_shim.vendors.{name}")
    print([name for name in sys.modules if name.split(".")[0] in ("torch", "torch_npu", "numpy")])
    """
    assert run_python(code) == "[]\n"
