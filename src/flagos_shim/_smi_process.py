"""Running one command of a vendor's tool so that nothing it does can hold up, litter or outlive this process.

The tool gets a process group of its own, no standard input, no shell, and a time limit; whatever still runs at the end
is killed with its group and waited for. Imports no torch.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import IO

Argv = tuple[str, ...]

_POLL = 0.1  # seconds; how often to look whether a tool has ended that left its pipes to a child
_KILL_WAIT = 1.0  # seconds to wait for a killed tool; one that is stuck inside the driver can take for ever
_MAX_OUTPUT = 8 * 1024 * 1024  # bytes; real outputs (16 chips and all their processes) are below 100 kB
_MAX_MESSAGE = 300  # characters of the tool's own words in an error

_RUNNING: set[subprocess.Popen[bytes]] = set()


class ToolError(Exception):
    """A command could not be run to a good end.

    Args:
        detail: what happened, as a sentence for the user.
        exit_code: what the tool ended with (negative: the signal); None if it did not end by itself.
        timed_out: it was not done at the deadline.
    """

    def __init__(self, detail: str, *, exit_code: int | None = None, timed_out: bool = False) -> None:
        super().__init__(detail)
        self.exit_code = exit_code
        self.timed_out = timed_out


def run(
    argv: Argv, path: str, environment: Mapping[str, str], deadline: float, writes_file: str | None = None
) -> tuple[str, str | None]:
    """Run one command to its end.

    Args:
        argv: the command; its first word is only its name.
        path: the program's absolute path.
        environment: the whole environment of the tool.
        deadline: when it has to be done, on `time.monotonic`.
        writes_file: name of a file that the tool writes into its current directory, which is then a temporary one.
    Returns:
        Its standard output, and the text of that file (None if it wrote none).
    Raises:
        ToolError: it could not be started, was not done in time, printed without end, or ended with an exit code.
    """
    command = " ".join(argv)
    with contextlib.ExitStack() as cleanup:
        try:
            place = None
            if writes_file is not None:
                place = tempfile.mkdtemp(prefix="flagos-smi-")
                # Errors do not matter: a killed child of the tool may still be writing there.
                cleanup.callback(shutil.rmtree, place, ignore_errors=True)
            process = subprocess.Popen(
                [path, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=place,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"`{command}` could not be started ({path}): {error}.") from error
        _RUNNING.add(process)
        started = time.monotonic()
        try:
            text, complaint = _collect(process, deadline)
        except TimeoutError as error:
            took = time.monotonic() - started
            detail = f"`{command}` was not done after {took:.1f} s and was killed; the driver may be hanging."
            raise ToolError(detail, timed_out=True) from error
        except OverflowError as error:
            raise ToolError(f"`{command}` printed more than {_MAX_OUTPUT} bytes and was killed.") from error
        finally:
            _end(process)
        if process.returncode != 0:
            lines = [line.strip() for line in f"{text}\n{complaint}".splitlines() if line.strip()]
            said = lines[-1][:_MAX_MESSAGE] if lines else "nothing"
            detail = f"`{command}` ended with exit code {process.returncode} and said: {said}"
            raise ToolError(detail, exit_code=process.returncode)
        return text, _written(place, writes_file)


def _written(place: str | None, name: str | None) -> str | None:
    if place is None or name is None:
        return None
    try:
        with open(os.path.join(place, name), encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_OUTPUT)
    except OSError:  # not written, or not to be read: for the parser both are "no file"
        return None


def _collect(process: subprocess.Popen[bytes], deadline: float) -> tuple[str, str]:
    """Both outputs of a process, up to its end. Raises TimeoutError at the deadline, OverflowError on endless output.

    `Popen.communicate` is not enough: it waits for a grandchild that keeps the pipes, and it has no limit of size.
    """
    assert process.stdout is not None and process.stderr is not None
    texts: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream, collected in texts.items():
            selector.register(stream, selectors.EVENT_READ, collected)
        while selector.get_map():
            ended = process.poll() is not None  # asked before reading, so that its last words are read
            ready = selector.select(min(_POLL, max(0.0, deadline - time.monotonic())))
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif len(key.data) > _MAX_OUTPUT:
                    raise OverflowError
            late = time.monotonic() >= deadline
            if ended and (late or not ready):
                break
            if late and process.poll() is None:
                raise TimeoutError
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    return texts[process.stdout].decode("utf-8", "replace"), texts[process.stderr].decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a tool; if it still runs, kill its group and see that it is waited for."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    _kill(process)
    try:
        process.wait(_KILL_WAIT)
    except subprocess.TimeoutExpired:
        # Stuck in the driver, where no signal arrives. Somebody has to wait for it, or it stays as a zombie.
        threading.Thread(target=process.wait, name="flagos-smi-reaper", daemon=True).start()
    _RUNNING.discard(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The number of a process that was waited for may belong to another by now: poll first.
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@atexit.register
def _kill_running() -> None:
    """A daemon thread may be reading when the interpreter ends; the tool must not outlive it."""
    for process in tuple(_RUNNING):
        _kill(process)
