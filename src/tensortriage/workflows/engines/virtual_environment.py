"""A folder with a Python of its own, made by venv and pip: as a whole, or not at all.

Whoever makes one holds a lock on the folder around it, and so does pip, which may outlive a command that was killed. A
mark says whose the folder is before anything else is in it, so that what a killed command left is known as ours, and a
user's own files are never removed. Nothing is imported from the current folder, and pip installs nowhere else.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tensortriage.errors import EngineMissing, UsageError

MARK = "tensortriage-environment.part"
"""Lies in a folder of ours until it is complete."""
PYTHON = "bin/python"
"""The interpreter in an environment."""
NEWER_PYTHONS = 3
"""How many minor versions from the oldest one on are looked for."""
SAID_LINES = 3
"""How many of pip's last lines an error quotes."""
_ELSEWHERE = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER")
"""Variables that let pip install somewhere else than into the environment."""
_LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Make a folder if there is none, and hold its lock; yields the handle that holds it.

    Raises:
        UsageError: When another command holds it (``environment-busy``).
        EngineMissing: Where no process can be handed a lock (``environment-failed``).
        OSError: When the folder cannot be made.
    """
    try:
        import fcntl
    except ImportError:
        raise failed("it takes Linux or macOS") from None
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    except BlockingIOError as error:
        raise UsageError(
            f"another command, or a pip process that it left behind, is making an environment in {folder}",
            slug="environment-busy",
            cure="wait for it; 'fuser -v FOLDER' names the process",
        ) from error
    finally:
        os.close(handle)


def clear(folder: Path, note: str) -> None:
    """Remove what is left of an environment, its mark last; nothing else is touched.

    Args:
        folder: Where it is.
        note: Name of the file that a complete one has.

    Raises:
        UsageError: When something else is there (``environment-foreign``).
    """
    if folder.is_symlink() or folder.exists():
        ours = folder.is_dir() and not folder.is_symlink()
        names = {entry.name for entry in folder.iterdir()} if ours else set()
        if not ours or (names and not names & {MARK, note}):
            raise UsageError(
                f"{folder} is not an environment that triage made",
                slug="environment-foreign",
                cure="move it away, or set XDG_DATA_HOME",
            )
        (folder / MARK).touch()
        for name in names - {MARK}:
            inside = folder / name
            if inside.is_dir() and not inside.is_symlink():
                shutil.rmtree(inside)
            else:
                inside.unlink()
        (folder / MARK).unlink()
        folder.rmdir()


def make(
    folder: Path,
    requirements: Sequence[str],
    lock: int,
    say: Callable[[str], None],
    *,
    oldest: tuple[int, int] = (3, 11),
    bare: Sequence[str] = (),
) -> Path:
    """Make an environment, and return its interpreter.

    Args:
        folder: Where; there is nothing yet.
        requirements: What is installed.
        lock: Handle that pip holds too.
        say: Told what takes a while.
        oldest: The oldest Python that the requirements take.
        bare: What is installed besides, without its dependencies.

    Raises:
        EngineMissing: When venv or pip fails, or there is no such Python (``environment-failed``).
        OSError: When the folder cannot be written.
    """
    base = interpreter(oldest)
    folder.mkdir()
    (folder / MARK).touch()
    say(f"making {folder}")
    call([base, "-I", "-m", "venv", str(folder)], "a virtual environment", lock)
    python = folder / PYTHON
    say(f"installing {' '.join(requirements)}")
    pip = [str(python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    call([*pip, *requirements], "pip", lock)
    if bare:
        say(f"installing {' '.join(bare)} without what they depend on")
        call([*pip, "--no-deps", *bare], "pip", lock)
    return python


def interpreter(oldest: tuple[int, int]) -> str:
    """Return a Python that is new enough: this one, or one on the PATH that starts.

    Raises:
        EngineMissing: When there is none (``environment-failed``).
    """
    if sys.version_info[:2] >= oldest:
        return sys.executable
    for minor in range(oldest[1], oldest[1] + NEWER_PYTHONS):
        found = shutil.which(f"python{oldest[0]}.{minor}")
        if found and subprocess.run([found, "-I", "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    wanted = ".".join(map(str, oldest))
    raise failed(f"it needs Python {wanted} or newer, and no python{wanted} on the PATH starts")


def call(words: Sequence[str], what: str, *handles: int) -> str:
    """Run a program to its end, and return what it wrote; it ends with this process, and with whatever stops it here.

    Args:
        words: Its command line.
        what: What it is, for the message.
        *handles: File handles that it holds as long as it lives.

    Raises:
        EngineMissing: When it fails (``environment-failed``).
        OSError: When it cannot be started.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env={name: value for name, value in os.environ.items() if name not in _ELSEWHERE},
        pass_fds=handles, start_new_session=True, preexec_fn=_end_with_parent,
    )  # fmt: skip
    try:
        told, complaints = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):  # pip starts others, which build packages
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if process.returncode:
        last = " ".join(line.strip() for line in (complaints or told).strip().splitlines()[-SAID_LINES:])
        raise failed(f"{what} ended with {process.returncode}: {last}")
    return told


def _end_with_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def failed(reason: str) -> EngineMissing:
    """Return the error of an environment that cannot be made."""
    return EngineMissing(
        f"the environment cannot be made: {reason}",
        slug="environment-failed",
        cure="read what pip printed; without a network, point pip at your packages (PIP_INDEX_URL, PIP_FIND_LINKS)",
    )
