"""Running an untrusted command: it may hang, print without end, leave children behind or not exist.

Every command gets a process group of its own, which is killed when the command is over, out of time, or no longer
wanted. stdout and stderr are read as one stream, in bounded memory, unless stdout is needed as a file.
"""

import contextlib
import dataclasses
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, BinaryIO, Protocol, Self

from tensortriage.engines.process.gpus import with_own_gpus
from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.commands.transcript import Printed, Transcript
from tensortriage.runs.commands.watchdog import Watchdog, kill_group

CHUNK_BYTES = 1 << 20
LINGER_SECONDS = 0.5
"""How long output is awaited from children that a finished command left behind."""
LOOK_SECONDS = 0.2


@frozen_dataclass
class Finished:
    """The end of a command.

    Attributes:
        code: Exit code, negative for a signal; None when it was killed for its time.
        printed: Its output on the terminal.
        seconds: Wall-clock time.
    """

    code: int | None
    printed: Printed
    seconds: float


@frozen_dataclass
class CommandLine:
    """A command to run.

    Attributes:
        words: Program and arguments; no shell.
        folder: Working directory; this process's own by default.
        timeout_seconds: Longest run; None for no limit.
        patterns: Regular expressions to look for in all of its output.
        stdout: File for its stdout, which is then no part of `Finished.printed`.
        variables: Variables of its environment in addition to this process's.
    """

    words: Sequence[str]
    folder: Path | None = None
    timeout_seconds: float | None = None
    patterns: Sequence[re.Pattern[str]] = ()
    stdout: Path | None = None
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)


class RunsCommands(Protocol):
    """Where commands run: processes of this machine, or a cluster."""

    def run(self, command: CommandLine, /) -> Finished:
        """Run a command to its end; see `Processes.run`."""
        ...

    def kill_running(self) -> None:
        """Kill the running process."""
        ...

    def close(self) -> None:
        """Kill the running process, and start nothing new."""
        ...


class Processes:
    """Runs commands, from any number of threads, and sees to it that none is left running."""

    def __init__(self) -> None:
        self._watchdog = Watchdog()
        self._running: set[int] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, command: CommandLine, /) -> Finished:
        """Run a command to its end.

        Raises:
            OSError: When the file for its stdout cannot be written.
            UsageError: When there is no such program or it cannot be started (``check-program-missing``).
        """
        started = time.monotonic()
        deadline = None if command.timeout_seconds is None else started + command.timeout_seconds
        with contextlib.nullcontext() if command.stdout is None else command.stdout.open("wb") as output:
            process = self._start(command, output)
        try:
            self._watchdog.guard(process.pid)
            transcript = Transcript(command.patterns)
            in_time = _read(process, transcript, deadline)
        finally:
            self._end(process)
        code = process.returncode if in_time else None
        return Finished(code, transcript.finish(), time.monotonic() - started)

    def kill_running(self) -> None:
        """Kill all running commands; waiting calls end with a signal."""
        with self._lock:
            for group in self._running:
                kill_group(group)

    def close(self) -> None:
        """Kill all running commands, and start nothing new."""
        with self._lock:
            self._closed = True
        self.kill_running()
        self._watchdog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, command: CommandLine, output: BinaryIO | None) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise search_is_ending()
            held = signal.pthread_sigmask(
                signal.SIG_UNBLOCK, {signal.SIGINT}
            )  # Ray blocks it, and commands inherit that
            try:
                process = subprocess.Popen(
                    list(command.words),
                    cwd=command.folder,
                    env={**(with_own_gpus() or os.environ), **command.variables},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if output is None else output,
                    stderr=subprocess.STDOUT if output is None else subprocess.PIPE,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise _not_started(command.words, error) from error
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, held)
            self._running.add(process.pid)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        kill_group(process.pid)
        process.wait()
        _read_end(process).close()
        with self._lock:
            self._running.discard(process.pid)
        self._watchdog.release(process.pid)


def _read(process: subprocess.Popen[bytes], transcript: Transcript, deadline: float | None) -> bool:
    """Read until the command is over; return whether that was in time."""
    stream = _read_end(process).fileno()
    readable = select.poll()
    readable.register(stream, select.POLLIN)
    over: float | None = None
    while True:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return False
        if over is None and process.poll() is not None:
            over = now + LINGER_SECONDS
        if over is not None and now >= over:
            return True
        limits = [LOOK_SECONDS, *(limit - now for limit in (deadline, over) if limit is not None)]
        if not readable.poll(1000.0 * max(0.0, min(limits))):
            continue
        chunk = os.read(stream, CHUNK_BYTES)
        if chunk:
            transcript.take(chunk)
        else:
            return _wait(process, deadline)


def _read_end(process: subprocess.Popen[bytes]) -> IO[bytes]:
    stream = process.stdout or process.stderr
    assert stream is not None
    return stream


def _wait(process: subprocess.Popen[bytes], deadline: float | None) -> bool:
    """Wait for a command that has closed its output."""
    try:
        process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def search_is_ending() -> UsageError:
    """Return why no more commands are started."""
    return UsageError(
        "the search is ending, and starts no more commands",
        slug="check-program-missing",
        cure="start the search again",
    )


def _not_started(words: Sequence[str], error: Exception) -> UsageError:
    program = words[0] if words else ""
    if isinstance(error, FileNotFoundError):
        reason = f"there is no program '{program}'"
    elif isinstance(error, OSError):
        reason = f"'{program}': {error.strerror or error}"
    else:
        reason = str(error)
    return UsageError(
        f"the check cannot be started: {reason}",
        slug="check-program-missing",
        cure="name a program on the PATH or give its path (./check.sh); quote the whole command to have a shell run it",
    )
