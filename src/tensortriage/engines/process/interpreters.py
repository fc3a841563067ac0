"""The Python of a worker: this one, another on this machine, or one behind ssh."""

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tensortriage.engines.process.gpus import VARIABLE, own_gpus
from tensortriage.errors import EngineMissing, UsageError

WORKER_OPTION = "Python that runs the engine: a path or ssh://[USER@]HOST[:PORT][/PATH/TO/PYTHON] (default: this one)"
START_SECONDS = 60.0
REMOTE = "ssh://"
MAX_PORT = 65535
_ADDRESS = re.compile(
    r"ssh://(?P<user>\w[\w.+-]*@)?(?P<host>\w[\w.-]*|\[[\da-fA-F:.]+(?:%\w+)?\])(?::(?P<port>\d{1,5}))?(?P<python>/[^\0\n\r]*)?"
)
_CHECK = (
    "import glob, hashlib, os, sys; assert sys.version_info >= (3, 8), 'older than Python 3.8'; import numpy; "
    "found = [place for folder in sys.path for place in glob.glob(os.path.join(folder or '.', '*-info'))]; "
    "told = sorted('{} {}'.format(os.path.basename(place), os.path.getmtime(place)) for place in found); "
    "print('usable', hashlib.sha256('|'.join([sys.version] + told).encode()).hexdigest())"
)
_packages: dict[str, str] = {}
"""By the word of an interpreter: the digest of its version and of the packages that are installed there."""


@functools.cache
def check_interpreter(word: str) -> str:
    """Try another Python and return its absolute path, or its address when it is behind ssh.

    Args:
        word: A path, a program on the PATH, or ``ssh://[USER@]HOST[:PORT][/PATH/TO/PYTHON]``.

    Raises:
        EngineMissing: When it is no Python >= 3.8 with numpy (``worker-unusable``).
    """
    if word.startswith(REMOTE):
        where, python = _behind_ssh(word)
        address, command = word, ["ssh", *where.split(" "), f"cd / && {python} -c {shlex.quote(_CHECK)}"]
    else:
        path = shutil.which(os.path.expanduser(word))
        if path is None:
            raise unusable(word, "there is no such program")
        address = os.path.abspath(path)
        command = [address, "-c", _CHECK]
    try:
        trial = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, cwd="/", check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise unusable(word, str(error)) from error
    usable, _, packages = trial.stdout.strip().partition(" ")
    if usable != "usable":
        raise unusable(word, (trial.stderr or trial.stdout).strip())
    _packages[word] = packages
    return address


def packages_digest(word: str) -> str:
    """Return a text that changes whenever a package is installed, upgraded or removed in a worker's Python.

    Args:
        word: As for `check_interpreter`; empty for this one.

    Raises:
        EngineMissing: As there.
    """
    if not word:
        folders = [Path(folder or ".") for folder in sys.path]
        packages = sorted(
            f"{place.name} {place.stat().st_mtime}" for folder in folders for place in folder.glob("*-info")
        )
        return hashlib.sha256("|".join([sys.version, *packages]).encode()).hexdigest()
    check_interpreter(word)
    return _packages[word]


def execnet_spec(interpreter: str) -> str:
    """Return how execnet starts a checked interpreter."""
    # Python looks for modules in the current folder first, where a stranger's queue.py may lie: hence the `cd /`.
    if interpreter.startswith(REMOTE):
        return "ssh={}//python=cd / && exec {}".format(*_behind_ssh(interpreter))
    # Ctrl-C in the terminal belongs to the host: a supervisor that has just been started would print a traceback.
    setting = f"export {VARIABLE}={own_gpus()}; " if own_gpus() else ""
    return f"""popen//python=/bin/sh -c '{setting}trap "" INT; cd / && exec "$0" "$@"' {shlex.quote(interpreter)}"""


def _behind_ssh(word: str) -> tuple[str, str]:
    """Return the arguments of ssh, which may ask nothing, and the command of the interpreter there.

    Raises:
        UsageError: When the word is no such address (``worker-address``); no part of it reaches ssh as an option.
    """
    address = _ADDRESS.fullmatch(word)
    if address is None or int(address["port"] or 22) > MAX_PORT:
        raise UsageError(
            f"'{word}' is not the address of a worker",
            slug="worker-address",
            cure="write ssh://[USER@]HOST[:PORT][/PATH/TO/PYTHON]; put other ssh options into ~/.ssh/config",
        )
    port = f"-p {address['port']} " if address["port"] else ""
    python = shlex.quote(address["python"]) if (address["python"] or "").strip("/") else "python3"
    return f"-o BatchMode=yes {port}-- {address['user'] or ''}{address['host']}", python


def unusable(interpreter: str, reason: str) -> EngineMissing:
    """Return the error for an interpreter, with the last line of its output."""
    lines = reason.splitlines()
    return EngineMissing(
        f"no worker can run with {interpreter}: {lines[-1] if lines else 'it ended at once'}",
        slug="worker-unusable",
        cure="name a Python >= 3.8 that has numpy and the engine: worker=/path/to/python",
    )
