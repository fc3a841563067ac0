"""The table of a batch: every command crossed with the models, feeds and targets that it takes, as command lines."""

import dataclasses
import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tensortriage.api import EngineSpec, TriageError
from tensortriage.sdk import DataError, did_you_mean, resolved_engine
from tensortriage_fleet.batch.batch_file import (
    BatchCommand,
    BatchFeed,
    BatchFile,
    BatchModel,
    BatchTarget,
    CellPattern,
    Expectation,
    words_of,
)
from tensortriage_fleet.cluster.command_pool import CommandNeeds

MADE_UP = "made-up"
"""Name of the feed of a model that is given none."""
RESERVED = ("--case", "--json", "-o", "--output", "--help", "-h", "--help-all")
"""Options that a batch sets itself."""


@dataclasses.dataclass(frozen=True, slots=True)
class Crossing:
    """The tables that a command is combined with, and the files it writes.

    Attributes:
        feed: Whether it takes feeds.
        target: Whether it takes a target.
        reference: Whether it takes a reference.
        tolerance: Whether it judges by tolerances.
        case: Whether it keeps its state in a case.
        output: File that it writes; empty for none.
    """

    feed: bool = True
    target: bool = True
    reference: bool = True
    tolerance: bool = True
    case: bool = True
    output: str = ""


COMMANDS: Mapping[str, Crossing] = {
    "diagnose": Crossing(),
    "run": Crossing(case=False),
    "check lint": Crossing(feed=False, target=False, reference=False, tolerance=False, case=False),
    "check consistency": Crossing(reference=False, tolerance=False, case=False),
    "debug reduce": Crossing(output="reduced.onnx"),
    "debug precision": Crossing(output="mixed.onnx"),
}
"""Commands that a batch can run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """One command line of a batch.

    Attributes:
        model, feed, target, command: Names of the combination; empty where the command takes none.
        words: The command line after ``triage``, without the batch's own options.
        crossing: The parameters of the command.
        rule: The expected outcome; None for a healthy one.
        optional: Whether its target may be missing.
        needs: Requirements of its target on the machine.
    """

    model: str
    feed: str
    target: str
    command: str
    words: tuple[str, ...]
    crossing: Crossing
    rule: Expectation | None = None
    optional: bool = False
    needs: CommandNeeds = CommandNeeds()  # noqa: RUF009 - frozen

    @property
    def name(self) -> str:
        """Name of the cell, unique in its batch."""
        return " / ".join(filter(None, (self.model, self.feed, self.target, self.command)))


def cells(batch: BatchFile, source: Path) -> tuple[Cell, ...]:
    """Return every cell, by model, feed, target and command as they are written.

    Args:
        batch: The batch.
        source: File of the batch, for messages.

    Raises:
        DataError: When there is none (``batch-empty``), a command cannot be run in a batch (``batch-command``), lacks a
            target (``batch-target-missing``) or is given an option that a batch sets itself (``batch-option``), or a
            pattern names nothing (``batch-pattern``).
    """
    _check_options(batch, source)
    crossed = tuple(_crossed(batch, source))
    for rule in batch.exclude:
        if not any(named_by(rule, cell) for cell in crossed):
            raise _unused(source, "exclude", rule)
    every = [cell for cell in crossed if not any(named_by(rule, cell) for rule in batch.exclude)]
    found: list[Cell] = []
    used: set[int] = set()
    for cell in every:
        first = next((place for place, rule in enumerate(batch.expect) if named_by(rule, cell)), None)
        if first is None:
            found.append(cell)
            continue
        used.add(first)
        holding = batch.expect[first]
        words = (*cell.words, *_tolerances(holding)) if cell.crossing.tolerance else cell.words
        found.append(dataclasses.replace(cell, rule=holding, words=words))
    if not found:
        raise DataError(
            f"{source} makes no cell", slug="batch-empty", cure="name models and commands, and exclude less"
        )
    for place, rule in enumerate(batch.expect):
        if place not in used:
            raise _unused(source, "expect", rule)
    return tuple(found)


def named_by(rule: CellPattern, cell: Cell) -> bool:
    """Whether a rule names a cell; one with a target names no cell without."""
    return all(
        value and fnmatch.fnmatchcase(value, pattern)
        for value, pattern in ((getattr(cell, key), pattern) for key, pattern in _places(rule).items())
    )


def _unused(source: Path, table: str, rule: CellPattern) -> DataError:
    places = ", ".join(f"{key}={value}" for key, value in _places(rule).items()) or "any cell"
    return DataError(
        f"{source}: an entry of '{table}' ({places}) applies to no cell",
        slug="batch-pattern",
        cure="correct its names, or put it before the entry that names the same cells",
    )


def _places(rule: CellPattern) -> dict[str, str]:
    given = {key: getattr(rule, key) for key in ("model", "feed", "target", "command")}
    return {key: pattern for key, pattern in given.items() if pattern is not None}


def _tolerances(rule: Expectation) -> Iterator[str]:
    for option, value in (("--atol", rule.atol), ("--rtol", rule.rtol)):
        if value is not None:
            yield from (option, str(value))


def _crossed(batch: BatchFile, source: Path) -> Iterator[Cell]:
    for model_name, model in batch.models.items():
        feeds = _feeds_of(batch, model_name, model, source)
        for command_name, command in batch.commands.items():
            crossing = _crossing(command_name, command, source)
            if crossing.target and not batch.targets:
                raise DataError(
                    f"{source}: command '{command_name}' needs a target, and there is none",
                    slug="batch-target-missing",
                    cure="name at least one in 'targets'",
                )
            targets = batch.targets if crossing.target else {"": None}
            for feed_name, feed in (feeds if crossing.feed else {"": None}).items():
                for target_name, target in targets.items():
                    yield Cell(
                        model_name,
                        feed_name,
                        target_name,
                        command_name,
                        tuple(_words(batch, model, command, feed, target, crossing)),
                        crossing,
                        optional=target.optional if target else False,
                        needs=needs_of(target) if target else CommandNeeds(),
                    )


def needs_of(target: BatchTarget) -> CommandNeeds:
    """Return the resources that a target needs."""
    try:
        on_gpu = resolved_engine(EngineSpec.parse(target.engine)).on_gpu
    except TriageError:
        on_gpu = False  # in the cell's own report
    return CommandNeeds(target.gpus, on_gpu, target.tags)


def _words(
    batch: BatchFile,
    model: BatchModel,
    command: BatchCommand,
    feed: BatchFeed | None,
    target: BatchTarget | None,
    crossing: Crossing,
) -> Iterator[str]:
    yield from (*command.run.split(), model.file)
    if target is not None:
        yield from ("--target", target.engine)
    if crossing.reference and batch.reference:
        yield from ("--reference", batch.reference)
    if feed is not None and feed.inputs:
        yield from ("--inputs", *feed.inputs)
    for part in (command, model, feed, target):
        if part is not None:
            yield from words_of(part.options)


def _feeds_of(batch: BatchFile, name: str, model: BatchModel, source: Path) -> Mapping[str, BatchFeed]:
    for pattern in model.feeds:
        if pattern != "*" and not fnmatch.filter(batch.feeds, pattern):
            raise DataError(
                f"{source}: model '{name}' names feed '{pattern}', and there is none",
                slug="batch-pattern",
                cure=did_you_mean(pattern, batch.feeds, otherwise="name it in 'feeds'"),
            )
    found = {
        feed: given
        for feed, given in batch.feeds.items()
        if any(fnmatch.fnmatchcase(feed, pattern) for pattern in model.feeds)
    }
    return found or {MADE_UP: BatchFeed()}


def _crossing(name: str, command: BatchCommand, source: Path) -> Crossing:
    found = COMMANDS.get(" ".join(command.run.split()))
    if found is None:
        raise DataError(
            f"{source}: command '{name}' is 'triage {command.run}', which a batch does not run",
            slug="batch-command",
            cure=did_you_mean(command.run, COMMANDS, otherwise=f"it runs {', '.join(COMMANDS)}"),
        )
    return found


def _check_options(batch: BatchFile, source: Path) -> None:
    tables: Sequence[Mapping[str, BatchModel | BatchFeed | BatchTarget | BatchCommand]] = (
        batch.models,
        batch.feeds,
        batch.targets,
        batch.commands,
    )
    for table in tables:
        for name, entry in table.items():
            for word in words_of(entry.options):
                if word.partition("=")[0] in RESERVED:
                    raise DataError(
                        f"{source}: the options of '{name}' have {word}, which a batch sets itself",
                        slug="batch-option",
                        cure="leave it out; results lie in the folder of the cell",
                    )
