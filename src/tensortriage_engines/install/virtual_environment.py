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

from tensortriage.sdk import EngineMissing, UsageError

MARK = "tensortriage-environment.part"
"""Lies in a folder of ours until it is complete."""
PYTHON = "bin/python"
"""The interpreter in an environment."""
SAID_LINES = 3
"""Number of pip's last lines that an error quotes."""
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
            f"another command, or a pip process that it left running, is making an environment in {folder}",
            slug="environment-busy",
            cure="wait for it; 'fuser -v FOLDER' names the process",
        ) from error
    finally:
        os.close(handle)


def clear(folder: Path, note: str) -> None:
    """Remove the rest of an environment, its mark last; nothing else is touched.

    Args:
        folder: Where it is.
        note: Name of the file that a complete one has.

    Raises:
        UsageError: When something else is there (``environment-foreign``).
    """
    check_ours(folder, note)
    if folder.exists():
        (folder / MARK).touch()
        for inside in list(folder.iterdir()):
            if inside.name == MARK:
                continue
            if inside.is_dir() and not inside.is_symlink():
                shutil.rmtree(inside)
            else:
                inside.unlink()
        (folder / MARK).unlink()
        folder.rmdir()


def check_ours(folder: Path, note: str) -> None:
    """Check that a folder is an environment or the rest of one, empty, or not there at all.

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


def make(
    folder: Path,
    base: str,
    requirements: Sequence[str],
    lock: int,
    say: Callable[[str], None],
    bare: Sequence[str] = (),
) -> Path:
    """Make an environment, and return its interpreter.

    Args:
        folder: Where; there is nothing yet.
        base: The Python that it is made with.
        requirements: Packages to install; wheels only, since a local build depends on other packages installed here.
        lock: Handle that pip holds too.
        say: Receives lines about slow steps.
        bare: What is installed besides, without its dependencies.

    Raises:
        EngineMissing: When venv or pip fails (``environment-failed``).
        OSError: When the folder cannot be written.
    """
    folder.mkdir()
    (folder / MARK).touch()
    say(f"making {folder}")
    call([base, "-I", "-m", "venv", str(folder)], "a virtual environment", lock)
    python = folder / PYTHON
    pip = [str(python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--only-binary=:all:"]
    for names, words in ((requirements, []), (bare, ["--no-deps"])):
        if names:
            say(f"installing {' '.join(names)}{' without their dependencies' if words else ''}")
            call([*pip, *words, *names], "pip", lock)
    return python


def stand(made: Path, folder: Path, note: str) -> None:
    """Put an environment that works in place of the one that may be there.

    Programs of an environment begin with the path of its interpreter, so they are told the new one.

    Args:
        made: Where it was made, next to that place.
        folder: The place.
        note: Name of the file that a complete one has.

    Raises:
        UsageError: When something else is there (``environment-foreign``).
    """
    for program in (made / PYTHON).parent.iterdir():
        if program.is_file() and not program.is_symlink() and str(made).encode() in (text := program.read_bytes()):
            program.write_bytes(text.replace(str(made).encode(), str(folder).encode()))
    old = aside(folder)
    clear(old, note)
    if folder.exists():
        folder.rename(old)
    made.rename(folder)
    (folder / MARK).unlink()
    clear(old, note)


def restore(folder: Path, note: str) -> None:
    """Put an environment back whose successor never came into its place, because the command was killed between."""
    old = aside(folder)
    if (old / note).is_file() and not folder.exists():
        old.rename(folder)


def aside(folder: Path) -> Path:
    """Return the place of an environment while its successor moves in."""
    return folder.with_name(f".old-{folder.name}")


def call(words: Sequence[str], what: str, *handles: int) -> str:
    """Run a program to its end, and return its output; it ends with this process, and with any interruption here.

    Args:
        words: Command line of the program.
        what: Description of the program, for the message.
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


def failed(reason: str, *, cure: str = "") -> EngineMissing:
    """Return the error of an environment that cannot be made."""
    return EngineMissing(
        f"the environment cannot be made: {reason}",
        slug="environment-failed",
        cure=cure
        or "read what pip printed; without a network, point pip at your packages (PIP_INDEX_URL, PIP_FIND_LINKS)",
    )
