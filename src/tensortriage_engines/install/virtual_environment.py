"""A folder with a Python of its own, made by venv and pip: as a whole, or not at all.

One command makes environments at a time. A mark names the owner of a folder before anything else is in it, so that the
remains of a killed command are known as ours, and a user's own files are never removed. The environment that was there
before comes back where the new one fails. Nothing is imported from the current folder, and pip installs nowhere else.
"""

import contextlib
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tensortriage.sdk import CommandLine, EngineMissing, Processes, UsageError

MARK = "tensortriage-environment.part"
"""Lies in a folder of ours until it is complete."""
PYTHON = "bin/python"
"""The interpreter in an environment."""
SAID_LINES = 3
"""Number of pip's last lines that an error quotes."""
_NOWHERE_ELSE = dict.fromkeys(("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER"), "")
"""Variables that let pip install somewhere else than into the environment; it ignores empty ones."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder if there is none, and hold its lock.

    Raises:
        UsageError: When another command holds it (``environment-busy``).
        EngineMissing: Where commands cannot be run by process groups (``environment-failed``).
        OSError: When the folder cannot be made.
    """
    if not hasattr(signal, "pthread_sigmask"):
        raise failed("it takes Linux or macOS")
    import filelock  # which warns where there are no locks

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock"), timeout=0):
            yield
    except filelock.Timeout as error:
        raise UsageError(
            f"another command is making an environment in {folder}", slug="environment-busy", cure="wait for it"
        ) from error


@contextlib.contextmanager
def replacing(folder: Path, note: str) -> Iterator[None]:
    """Give an empty folder with a mark; its former contents come back where the block fails, and are removed otherwise.

    Args:
        folder: The place of an environment.
        note: Name of the file that a complete one has.

    Raises:
        UsageError: When something else is there (``environment-foreign``).
    """
    check_ours(folder, note)
    old = _aside(folder)
    remove(old)
    if (folder / note).is_file():
        folder.rename(old)
    remove(folder)
    folder.mkdir()
    (folder / MARK).touch()
    try:
        yield
    except BaseException:
        remove(folder)
        if old.exists():
            old.rename(folder)
        raise
    (folder / MARK).unlink()
    remove(old)


def restore(folder: Path, note: str) -> None:
    """Put an environment back whose successor was never complete, because the command was killed.

    Raises:
        UsageError: When something else is there (``environment-foreign``).
    """
    check_ours(folder, note)
    old = _aside(folder)
    if (old / note).is_file() and not (folder / note).is_file():
        remove(folder)
        old.rename(folder)


def remove(folder: Path) -> None:
    """Remove an environment or the rest of one, its mark last; links are not followed."""
    if folder.exists():
        (folder / MARK).touch()
        empty(folder)
        shutil.rmtree(folder)


def empty(folder: Path) -> None:
    """Remove the contents of an environment but for its mark."""
    for inside in list(folder.iterdir()):
        if inside.is_dir() and not inside.is_symlink():
            shutil.rmtree(inside)
        elif inside.name != MARK:
            inside.unlink()


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
    folder: Path, base: str, requirements: Sequence[str], say: Callable[[str], None], bare: Sequence[str] = ()
) -> Path:
    """Make an environment, and return its interpreter.

    Args:
        folder: Its folder; nothing but the mark is in it.
        base: The Python that it is made with.
        requirements: Packages to install; wheels only, since a local build depends on other packages installed here.
        say: Receives lines about slow steps.
        bare: Further packages, installed without their dependencies.

    Raises:
        EngineMissing: When venv or pip fails (``environment-failed``).
    """
    say(f"making {folder}")
    call([base, "-I", "-m", "venv", str(folder)], "a virtual environment")
    python = folder / PYTHON
    pip = [str(python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--only-binary=:all:"]
    for names, words in ((requirements, []), (bare, ["--no-deps"])):
        if names:
            say(f"installing {' '.join(names)}{' without their dependencies' if words else ''}")
            call([*pip, *words, *names], "pip")
    return python


def call(words: Sequence[str], what: str) -> str:
    """Run a program to its end, and return its output; it ends with this process, and with any interruption here.

    Args:
        words: Command line of the program.
        what: Description of the program, for the message.

    Raises:
        EngineMissing: When it fails (``environment-failed``).
    """
    with Processes() as processes:
        done = processes.run(CommandLine(words, variables=_NOWHERE_ELSE))
    if done.code:
        last = " ".join(line.strip() for line in done.printed.text.strip().splitlines()[-SAID_LINES:])
        raise failed(f"{what} ended with {done.code}: {last}")
    return done.printed.text


def failed(reason: str, *, cure: str = "") -> EngineMissing:
    """Return the error of an environment that cannot be made."""
    return EngineMissing(
        f"the environment cannot be made: {reason}",
        slug="environment-failed",
        cure=cure or "read pip's output; without a network, point pip at your packages (PIP_INDEX_URL, PIP_FIND_LINKS)",
    )


def _aside(folder: Path) -> Path:
    """Return the place of an environment while its successor is made."""
    return folder.with_name(f".old-{folder.name}")
