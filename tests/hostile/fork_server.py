"""Commands run in forks of a process that has imported everything: a whole command line in tens of milliseconds.

A fork has a folder, a HOME and a TMPDIR of its own and is watched by what started it: how it ended, how long it took,
how much memory it and its children held, what it left behind. The server is a process of its own because a process with
threads, such as that of a test, cannot be forked safely.
"""

import atexit
import contextlib
import dataclasses
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 60.0
"""A command that takes longer hangs."""
MEMORY_BYTES = 4 << 30
_LOOK_SECONDS = 0.02
_IMPORTS = (
    "onnx", "onnx_ir", "onnxruntime", "rich.console", "msgspec", "jinja2", "execnet", "tensortriage.api",
    "tensortriage.workflows.diagnosis", "tensortriage.engines.onnxruntime.engine", "tensortriage.engines.emulate",
    "tensortriage.cli.diagnose.command", "tensortriage.cli.run.command", "tensortriage.cli.convert.command",
)  # fmt: skip
_BLOCK = re.compile(r"^(\[!\] )?triage: error\[[a-z0-9-]+\]: \S.*\n  cure: \S", re.MULTILINE)
_FORBIDDEN = (
    "Traceback (most recent call last)", "error[internal]", "Exception ignored", "Fatal Python error", "Warning: ",
    "leaked",
)  # fmt: skip
_CODES = {0, 1, 2, 3, 4, 130}  # 130: nobody answers its question


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Exit code; negative for the signal that ended it.
        cause: ``time`` or ``memory`` when the watcher killed it, else empty.
        out: What it wrote to stdout.
        err: What it wrote to stderr.
        seconds: Wall time.
        peak_bytes: Largest resident memory of the command or one of its children.
        left: Files in HOME and TMPDIR afterwards.
        made: Files in its folder that had not been there.
    """

    code: int
    cause: str
    out: str
    err: str
    seconds: float
    peak_bytes: int
    left: tuple[str, ...]
    made: tuple[str, ...]

    @property
    def slug(self) -> str:
        """The slug of the error it told; else its exit code in words."""
        found = re.search(r"triage: error\[([a-z0-9-]+)\]", self.err, re.MULTILINE)
        return found[1] if found else f"exit {self.code}"

    def faults(self, named=()):
        """Return what must not be, in words; `named` are the files that the command line names."""
        found = [f"killed for {self.cause}"] if self.cause else []
        if self.code not in _CODES:
            found.append(f"ended with {self.code}")
        if self.code in (2, 3) and not _BLOCK.search(self.err):
            found.append("no error with slug and cure")
        found += [f"said {word!r}" for word in _FORBIDDEN if word in self.err]
        found += [f"left {path}" for path in self.left]
        found += [f"made {path}" for path in self.made if not any(path.split("/")[0] == name for name in named)]
        if self.peak_bytes > MEMORY_BYTES:
            found.append(f"held {self.peak_bytes >> 20} MB")
        return found


class ForkServer:
    """A process that runs command lines in forks of itself.

    Args:
        folder: Where each command gets a folder of its own, which is gone afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def run(self, words, files=None, *, seconds=SECONDS, environment=None):
        """Run a command in a new folder.

        Args:
            words: Its words, without ``triage``.
            files: What lies in the folder: name to bytes, or to a folder that is copied.
            seconds: Longest time.
            environment: Further variables.
        """
        self._count += 1
        place = self._folder / f"{os.getpid()}-{self._count}"
        for name in ("work", "home", "tmp"):
            (place / name).mkdir(parents=True)
        for name, data in (files or {}).items():
            path = place / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(data, Path):
                shutil.copytree(data, path, symlinks=True)
            else:
                path.write_bytes(data)
        before = set((place / "work").rglob("*"))
        variables = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), **(environment or {})}
        request = {"words": [str(word) for word in words], "place": str(place), "env": variables, "seconds": seconds}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        out, err = ((place / name).read_bytes().decode(errors="replace") for name in ("out", "err"))
        made = {path.relative_to(place / "work") for path in set((place / "work").rglob("*")) - before}
        left = [str(path.relative_to(place)) for name in ("home", "tmp") for path in (place / name).rglob("*")]
        shutil.rmtree(place)
        return Ended(**answer, out=out, err=err, left=tuple(left), made=tuple(sorted(map(str, made))))

    def close(self):
        """End the process."""
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


def serve():
    """Answer requests until stdin ends."""
    from tensortriage_worker.silence import silence

    silence()  # or a library starts a thread when it is imported, which no fork would have
    for name in _IMPORTS:
        with contextlib.suppress(ImportError):
            __import__(name)
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps(watch(request)) + "\n")
        sys.stdout.flush()


def watch(request):
    """Run one command in a fork and say how it ended."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        be_command(request)
    cause = ""
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        taken = time.monotonic() - started
        if pid:
            break
        if taken > 1.0 and not cause:
            cause = "time" if taken > request["seconds"] else "memory" if held(child) > MEMORY_BYTES else ""
            if cause:
                end(child)
        time.sleep(_LOOK_SECONDS)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "cause": cause, "seconds": taken, "peak_bytes": usage.ru_maxrss << 10}


def be_command(request):
    """Be the command; does not return."""
    os.setsid()
    place = request["place"]
    os.chdir(f"{place}/work")
    os.environ.update(request["env"])
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "out", os.O_WRONLY), (2, "err", os.O_WRONLY)):
        path = name if number == 0 else f"{place}/{name}"
        os.dup2(os.open(path, flags | os.O_CREAT, 0o600), number)
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        signal.signal(number, handler)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    sys.argv = ["triage", *request["words"]]
    from tensortriage.cli import main

    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)  # taking down what this process has imported costs more than the command


def family(pid):
    """Return a process and all that it started."""
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def held(pid):
    """Return the largest resident memory among a process and what it started."""
    import psutil

    sizes = [0]
    for process in family(pid):
        with contextlib.suppress(psutil.Error):
            sizes.append(process.memory_info().rss)
    return max(sizes)


def end(pid):
    """Kill a process and all that it started."""
    import psutil

    for process in reversed(family(pid)):
        with contextlib.suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    serve()
