"""Environments for engines: a virtual environment per engine and version, made on request, and used as a worker.

Engines pin each other's libraries, and two versions of one engine cannot be in one Python. So each lives in a virtual
environment of its own under the user's data folder, and runs from there with ``worker=``. It counts once its engine has
converted and run a small network in it; until then the one that may be there is kept aside.
"""

import dataclasses
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from tensortriage.sdk import (
    ENVIRONMENT_NOTE,
    Availability,
    EngineMissing,
    StoreError,
    TriageError,
    UsageError,
    availabilities,
    close_idle,
    dump,
    environments_folder,
    load,
)
from tensortriage_engines.conformance.trial import try_out
from tensortriage_engines.install.pythons import interpreter, lacking, minors_with, needed
from tensortriage_engines.install.recipes import RECIPES, Ingredients
from tensortriage_engines.install.virtual_environment import (
    MARK,
    PYTHON,
    call,
    empty,
    failed,
    locked,
    make,
    replacing,
    restore,
)

ENVIRONMENT_FORMAT = "tensortriage.environment/1"
_VERSION = re.compile(r"\d[\w.+!-]*")


@dataclasses.dataclass(frozen=True, slots=True)
class Environment:
    """An environment that was made.

    Attributes:
        engine: The requested engine, or the provider of one.
        name: Name of the folder: the engine's, or with the requested version.
        python: Interpreter of the environment, for ``worker=``.
        requirements: The installed requirements.
        version: Version that the engine reports there.
    """

    engine: str
    name: str
    python: str
    requirements: tuple[str, ...]
    version: str = ""
    format: str = ENVIRONMENT_FORMAT

    @property
    def target(self) -> str:
        """The target to write."""
        return RECIPES[self.engine].target(self.python)


@dataclasses.dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine and its state here.

    Attributes:
        name: Name in specs.
        usable: Whether it can be used in this Python.
        version: Version of its library, where known.
        device: Its device.
        reason: Why it cannot be used.
        command: The one command that makes it usable; empty when it is, or there is none.
        environments: Environments that were made for it.
    """

    name: str
    usable: bool
    version: str
    device: str
    reason: str
    command: str
    environments: tuple[Environment, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class EngineList:
    """Every engine, and where environments are."""

    engines: tuple[EngineRow, ...]
    folder: str
    format: str = "tensortriage.engines/1"


def list_engines() -> EngineList:
    """Return every engine, whether it can be used here, and the command that makes it usable."""
    try:
        folder: Path | None = environments_folder()
    except UsageError:  # a user without a home has no environments
        folder = None
    made = environments() if folder is not None else ()
    rows = []
    for name, found in availabilities().items():
        own = tuple(environment for environment in made if environment.engine == name)
        default = next((environment for environment in own if environment.name == name), None)
        if not found.usable and default is not None:  # where it runs without options
            found = Availability(usable=True, version=default.version, device="its own environment")
        command = "" if found.usable else _command(name, found, own)
        rows.append(EngineRow(name, found.usable, found.version, found.device, found.reason, command, own))
    for name, recipe in RECIPES.items():
        if name != recipe.engine:
            own = tuple(environment for environment in made if environment.engine == name)
            needs = f"a provider of {recipe.engine}, in an environment of its own"
            command = f"--target {shlex.quote(own[0].target)}" if own else f"triage engines install {name}"
            rows.append(
                EngineRow(name, usable=False, version="", device="", reason=needs, command=command, environments=own)
            )
    return EngineList(tuple(rows), str(folder or ""))


def _command(name: str, found: Availability, own: tuple[Environment, ...]) -> str:
    if own:
        return f"--target {shlex.quote(own[0].target)}"
    return f"triage engines install {name}" if name in RECIPES else found.cure


def environments() -> tuple[Environment, ...]:
    """Return the environments that were made, by name."""
    found = []
    for note in sorted(
        environments_folder().glob(f"[!.]*/{ENVIRONMENT_NOTE}")
    ):  # not those that are being made or replaced
        try:
            found.append(load(note, Environment))
        except StoreError:  # another version's, or damaged: it is made again on request
            continue
    return tuple(environment for environment in found if environment.engine in RECIPES)


def install(word: str, *, say: Callable[[str], None] = lambda text: None) -> Environment:
    """Make an environment in which an engine converts and runs a small network, or return the one that is there.

    A broken environment, or one of other packages than those of today, stays until the new one works.

    Args:
        word: ``NAME``, or ``NAME==VERSION`` for another version of the engine's package.
        say: Receives lines about slow steps.

    Raises:
        UsageError: When there is no recipe for that engine (``environment-unknown``), for a malformed version or one
            older than the adapter knows (``environment-version``), and where the environment cannot be
            (``environment-path``, ``environment-foreign``, ``environment-busy``, ``home-missing``).
        EngineMissing: When it cannot be made, or the engine does not work in it (``environment-failed``).
    """
    engine, version, made_of = _asked(word)
    name = f"{engine}-{version}" if version else engine
    around = environments_folder()
    if "," in str(around):
        raise UsageError(
            f"{around} contains a comma, so that no engine spec can name a Python in it",
            slug="environment-path",
            cure="set XDG_DATA_HOME to another folder",
        )
    try:
        with locked(around):
            restore(around / name, ENVIRONMENT_NOTE)
            return _known(name, made_of, say) or _make(engine, name, made_of, say)
    except OSError as error:
        raise failed(f"{error.filename or around}: {error.strerror or error}") from error


def _asked(word: str) -> tuple[str, str, Ingredients]:
    """Return the engine, the version if one is named, and its packages."""
    engine, pinned, version = word.partition("==")
    if engine not in RECIPES:
        raise UsageError(
            f"there is no environment for an engine '{engine}'",
            slug="environment-unknown",
            cure=f"use one of: {', '.join(RECIPES)}; 'triage engines' shows how to install the others",
        )
    if pinned and not _VERSION.fullmatch(version):
        raise UsageError(
            f"'{version}' is not a version of a package",
            slug="environment-version",
            cure="write e.g. openvino==2024.0.0",
        )
    made_of = RECIPES[engine].of(version)
    if made_of is None:
        raise UsageError(
            f"releases of {RECIPES[engine].distribution} before {RECIPES[engine].oldest} are too old for '{engine}' "
            f"here",
            slug="environment-version",
            cure=f"triage engines install {engine}=={RECIPES[engine].oldest}, or a newer one",
        )
    return engine, version, made_of


def _known(name: str, made_of: Ingredients, say: Callable[[str], None]) -> Environment | None:
    """Return the environment of that name, if it exists with the same packages and its engine works."""
    place = environments_folder() / name
    for known in environments():
        if known.name == name and Path(known.python) == place / PYTHON and Path(known.python).exists():
            (place / MARK).unlink(missing_ok=True)
            if known.requirements != (*made_of.requirements, *made_of.bare):
                say(f"{place} has other package versions; kept until the new environment passes its test")
                return None
            try:
                try_out(RECIPES[known.engine].engine, known.target, known.python)
            except TriageError as error:
                say(f"{place} no longer works; kept until the new environment does: {error.message}")
                return None
            return known
    return None


def _make(engine: str, name: str, made_of: Ingredients, say: Callable[[str], None]) -> Environment:
    folder = environments_folder() / name
    close_idle()  # a worker of the one that was there
    with replacing(folder, ENVIRONMENT_NOTE):
        python = _installed(engine, folder, made_of, say)
        version = _tried(engine, python, made_of, say)
        made = Environment(engine, name, str(python), (*made_of.requirements, *made_of.bare), version)
        dump(made, folder / ENVIRONMENT_NOTE)
    return made


def _tried(engine: str, python: Path, made_of: Ingredients, say: Callable[[str], None]) -> str:
    """Run a small network in a new environment; return the version of the engine's package there."""
    recipe = RECIPES[engine]
    say(f"running a small network on {engine}")
    try:
        code = f"import importlib.metadata as m; print(m.version({recipe.distribution!r}))"
        version = call([str(python), "-I", "-c", code], "the new Python").split()[-1]
        try_out(recipe.engine, recipe.target(str(python)), str(python))
    except TriageError as error:
        cure = error.cure if made_of == recipe.of() else f"triage engines install {engine}, which is {recipe.version}"
        raise failed(f"{engine} does not work in it: {error.message}", cure=cure) from error
    return version


def _installed(engine: str, folder: Path, made_of: Ingredients, say: Callable[[str], None]) -> Path:
    """Make a new environment with a Python that its packages have wheels for; return its interpreter."""
    what = made_of.bare[0] if RECIPES[engine].alone else made_of.requirements[0]
    base = interpreter(made_of.pythons)
    if not base:
        raise needed(what, made_of.pythons)
    try:
        return make(folder, base, made_of.requirements, say, made_of.bare)
    except EngineMissing as error:
        package, version = lacking(error.message)
        if not package:
            raise
        say(f"{package} {version} is not for this Python: looking for one that is")
        minors = minors_with(base, package, version)
        if not minors:
            raise failed(f"there is no {package} {version} for any Python here") from error
        base = interpreter(made_of.pythons, minors)
        if not base:
            raise needed(f"{package} {version}", made_of.pythons, minors) from error
    empty(folder)
    return make(folder, base, made_of.requirements, say, made_of.bare)
