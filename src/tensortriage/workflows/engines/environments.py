"""Environments for engines: a virtual environment per engine and version, made when asked for, and used as a worker.

Engines pin each other's libraries, and two versions of one engine cannot be in one Python. So each lives in a virtual
environment of its own under the user's data folder, and runs from there with ``worker=``. An environment counts once
its note is written, which is last.
"""

import dataclasses
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from tensortriage.engines.base import Availability
from tensortriage.engines.capabilities import ChecksOptions
from tensortriage.engines.registry import availabilities, resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import StoreError, TriageError, UsageError
from tensortriage.runs.environment_folder import NOTE, data_folder
from tensortriage.values.serial import dump, load
from tensortriage.workflows.engines.recipes import RECIPES
from tensortriage.workflows.engines.virtual_environment import MARK, PYTHON, call, clear, failed, locked, make

ENVIRONMENT_FORMAT = "tensortriage.environment/1"
_VERSION = re.compile(r"\d[\w.+!-]*")


@dataclasses.dataclass(frozen=True, slots=True)
class Environment:
    """An environment that was made.

    Attributes:
        engine: What it was asked for as: an engine, or a provider that one loads.
        name: Its folder's name: the same, or that and the version that was asked for.
        python: Its interpreter, for ``worker=``.
        requirements: What was installed.
        version: What the engine tells of itself there.
    """

    engine: str
    name: str
    python: str
    requirements: tuple[str, ...]
    version: str = ""
    format: str = ENVIRONMENT_FORMAT

    @property
    def target(self) -> str:
        """What to write as a target."""
        return RECIPES[self.engine].target(self.python)


@dataclasses.dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine as it stands here.

    Attributes:
        name: Its name in specs.
        usable: Whether it can be used in this Python.
        version: Of its library, where known.
        device: What it runs on.
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
    """Return every engine, whether it can be used here, and what makes it so."""
    try:
        folder: Path | None = data_folder()
    except UsageError:  # a user without a home has no environments
        folder = None
    made = environments() if folder is not None else ()
    rows = []
    for name, found in availabilities().items():
        own = tuple(environment for environment in made if environment.engine == name)
        default = next((environment for environment in own if environment.name == name), None)
        if not found.usable and default is not None:  # where it runs without being told
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
    for note in sorted(data_folder().glob(f"*/{NOTE}")):
        try:
            found.append(load(note, Environment))
        except StoreError:  # another version's, or damaged: it is made again when asked for
            continue
    return tuple(environment for environment in found if environment.engine in RECIPES)


def install(word: str, *, say: Callable[[str], None] = lambda text: None) -> Environment:
    """Make an environment for an engine, or return the one that is there.

    Args:
        word: ``NAME``, or ``NAME==VERSION`` for another version of the engine's package.
        say: Told what takes a while.

    Raises:
        UsageError: When there is no recipe for that engine (``environment-unknown``), for what is no version
            (``environment-version``), and where the environment cannot be (``environment-path``,
            ``environment-foreign``, ``environment-busy``, ``home-missing``).
        EngineMissing: When it cannot be made, or the engine does not start in it (``environment-failed``).
    """
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
    name = f"{engine}-{version}" if version else engine
    recipe = RECIPES[engine]
    requirements, bare = recipe.of(version) if version else (recipe.requirements, recipe.bare)
    around = data_folder()
    if "," in str(around):
        raise UsageError(
            f"{around} contains a comma, so that no engine spec can name a Python in it",
            slug="environment-path",
            cure="set XDG_DATA_HOME to another folder",
        )
    try:
        with locked(around) as lock:
            return _known(name) or _make(engine, name, requirements, bare, lock, say)
    except OSError as error:
        raise failed(f"{error.filename or around}: {error.strerror or error}") from error


def _known(name: str) -> Environment | None:
    """Return the environment of that name, if it is there and has its Python."""
    for known in environments():
        if known.name == name and Path(known.python) == data_folder() / name / PYTHON and Path(known.python).exists():
            (data_folder() / name / MARK).unlink(missing_ok=True)
            return known
    return None


def _make(
    engine: str,
    name: str,
    requirements: tuple[str, ...],
    bare: tuple[str, ...],
    lock: int,
    say: Callable[[str], None],
) -> Environment:
    folder = data_folder() / name
    clear(folder, NOTE)
    try:
        recipe = RECIPES[engine]
        python = make(folder, requirements, lock, say, oldest=recipe.python, bare=bare)
        made = Environment(engine, name, str(python), (*requirements, *bare))
        made = dataclasses.replace(made, version=_started(made))
        dump(made, folder / NOTE)
        (folder / MARK).unlink()
    except BaseException:
        if not (folder / NOTE).exists():
            clear(folder, NOTE)
        raise
    return made


def _started(made: Environment) -> str:
    """Return the version of the engine's package there; for engines that need no model, the engine was started too."""
    if made.engine != "torch":
        spec = EngineSpec.parse(made.target)
        engine = resolve(spec).engine
        if isinstance(engine, ChecksOptions):
            try:
                engine.check(spec.options)
            except TriageError as error:
                raise failed(f"{made.engine} does not start in it: {error.message}") from error
    code = f"import importlib.metadata as m; print(m.version({RECIPES[made.engine].package!r}))"
    return call([made.python, "-I", "-c", code], "the new Python").strip()
