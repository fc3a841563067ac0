"""Tools of adapters in their environment: packages to import, and programs that convert models."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from tensortriage_worker.adapter import AdapterError, AdapterFailure

CONVERTED_BY = "command"
"""Key of the converter's command line in a build's report."""
_commands = []  # type: List[str]
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def one_line(error: BaseException) -> str:
    """Return the words of an error on one line."""
    return " ".join(str(error).split())


class Library(NamedTuple):
    """Modules that belong together.

    Attributes:
        engine: The engine's word in specs, which an environment can be made for.
        title: The package's name in messages.
        slug: Slug of the error for one that cannot be imported.
        modules: Their whole names.
        distribution: The package that gives the version; empty where any version will do.
        oldest: The oldest version that the adapter knows.
        cure: Advice when it cannot be imported, where that is not making an environment.
    """

    engine: str
    title: str
    slug: str
    modules: Tuple[str, ...]
    distribution: str = ""
    oldest: str = ""
    cure: str = ""


def imported(library: Library) -> Tuple[Any, ...]:
    """Import the modules of a library.

    Raises:
        AdapterError: When one cannot be imported, with the library's slug, or is too old (``engine-too-old``).
    """
    _check_age(library)
    try:
        return tuple(importlib.import_module(name) for name in library.modules)
    except ImportError as error:
        message = "{} cannot be imported: {}".format(library.title, one_line(error))
        raise missing(library.engine, message, slug=library.slug, cure=library.cure) from error


def _check_age(library: Library) -> None:
    import importlib.metadata as metadata

    try:
        version = metadata.version(library.distribution) if library.distribution else ""
    except metadata.PackageNotFoundError:  # built by hand: the user vouches for its version
        return
    if version and _in_order(version) < _in_order(library.oldest):
        message = "{} {} is older than the oldest supported release, {}".format(library.title, version, library.oldest)
        raise missing(library.engine, message, slug="engine-too-old", cure=library.cure)


def _in_order(version: str) -> List[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def missing(engine: str, message: str, *, slug: str, cure: str = "") -> AdapterError:
    """Return the error for a package or program that an environment of the engine would have."""
    return AdapterError(AdapterFailure.MISSING, message, slug, cure or "triage engines install " + engine)


def content_of(
    options: Mapping[str, str], convert_it: Callable[[], bytes], given: Iterable[str] = ("converted",)
) -> Tuple[bytes, Dict[str, Any]]:
    """Return the file to run, and the report about it: a file that an option names, or a new conversion.

    Args:
        options: Options of the build.
        convert_it: Converts the model.
        given: Options that name a file of the kind that this returns.
    """
    for key in given:
        if options.get(key):
            return Path(options[key]).read_bytes(), {}
    started = time.perf_counter()
    del _commands[:]
    content = convert_it()
    return content, {"conversion_seconds": time.perf_counter() - started, CONVERTED_BY: "\n".join(_commands)}


def convert(
    title: str, command: List[str], folder: Path, made: Iterable[Path], said: Callable[[List[str]], List[str]]
) -> None:
    """Run a program that converts a model, as in its activated environment: onnx2tf leaves out tools that it misses.

    Args:
        title: The converter's name in messages.
        command: Program and arguments.
        folder: Its working directory.
        made: Files that are there afterwards, or it has failed.
        said: Picks, of its printed lines, stripped and without empty ones, those with the reason of a failure.

    Raises:
        AdapterError: When it fails, with its message and the signal that ended it.
    """
    told = [os.path.basename(word) if os.path.isabs(word) else word for word in command]
    told[0] = "python" if command[0] == sys.executable else told[0]
    _commands.append(" ".join(map(shlex.quote, told)))
    paths = os.pathsep.join(filter(None, [str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    done = subprocess.run(
        command,
        cwd=str(folder),
        env=dict(os.environ, PATH=paths),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if not done.returncode and all(path.is_file() for path in made):
        return
    text = _COLOURS.sub("", done.stdout.decode("utf-8", "replace")).replace("\r", "\n")
    lines = said([line.strip() for line in text.splitlines() if line.strip()])
    ending = "" if done.returncode >= 0 else "signal {}: ".format(-done.returncode)
    words = " | ".join(lines) or "it gave no reason"
    raise AdapterError(AdapterFailure.BUILD, "{} failed: {}{}".format(title, ending, words))


def telling(lines: List[str], words: Iterable[str] = ("error",)) -> List[str]:
    """Return the lines that hold one of the words, in any case; all where none does."""
    words = tuple(words)
    return [line for line in lines if any(word in line.lower() for word in words)] or lines
