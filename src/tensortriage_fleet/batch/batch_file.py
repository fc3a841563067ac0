"""The file of a batch: the models, feeds, targets and commands to combine, and the expected results of the cells.

YAML and TOML have the same contents, and every table is validated in the same way: an unknown key is an error that
names the intended one, and nothing is converted quietly. A name that is given twice is an error too, because one of the
two would be left out of the table without a word.
"""

import importlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tensortriage.api import VerdictKind
from tensortriage.sdk import DataError, UsageError, did_you_mean, read_regular

MAX_BYTES = 4 << 20
"""Largest batch file; a person wrote it."""
FORMAT = "tensortriage.batch/1"
_NAME = re.compile(r"\w[\w .+-]{0,99}")

Number = float | int
Words = tuple[str | Number, ...]
"""Words of a command line as YAML and TOML give them."""


class BatchModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model.

    Attributes:
        file: ONNX file.
        feeds: Names of the feeds that it takes, or patterns of them; none for made-up data.
        options: More words for every command on it.
    """

    file: str
    feeds: tuple[str, ...] = ("*",)
    options: Words = ()


class BatchFeed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A feed.

    Attributes:
        inputs: Files, as ``--inputs`` takes them.
        options: Further options, such as ``--seed 3``.
    """

    inputs: tuple[str, ...] = ()
    options: Words = ()


class BatchTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target.

    Attributes:
        engine: Spec of the engine.
        options: More words for every command on it.
        optional: Leave its cells out where it cannot be used.
        tags: Resources of a node that its cells need, such as ``tensorrt``; only a cluster looks at them.
        gpus: Number of GPUs that a cell needs; one, where its engine is known to compute on one.
    """

    engine: str
    options: Words = ()
    optional: bool = False
    tags: tuple[str, ...] = ()
    gpus: int = 0


class BatchCommand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command.

    Attributes:
        run: Words of the command after ``triage``, e.g. ``check lint``.
        options: More words.
    """

    run: str
    options: Words = ()


class CellPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cells by the names of their model, feed, target and command, or by patterns; a missing name matches anything."""

    model: str | None = None
    feed: str | None = None
    target: str | None = None
    command: str | None = None


class Expectation(CellPattern, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Expected result of cells; of several the first that names a cell holds.

    Attributes:
        verdict: Verdict of ``diagnose``, or several.
        culprit: Node that the verdict names first, or a pattern.
        match: Whether the command finds nothing wrong: exit code 0, else 1.
        exit: Exit code, or several.
        atol: Absolute tolerance that judges outputs.
        rtol: Relative tolerance.
        skip: Why the cells are not run; empty to run them.
        note: Reason of the expectation; shown with the cell.
    """

    verdict: str | tuple[str, ...] = ()
    culprit: str = ""
    match: bool | None = None
    exit: int | tuple[int, ...] = ()
    atol: str | Number | None = None
    rtol: str | Number | None = None
    skip: str = ""
    note: str = ""


class BatchFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch.

    Attributes:
        models: Name to model.
        feeds: Name to feed; none for made-up data.
        targets: Name to target.
        commands: Name to command.
        reference: Spec of the engine that is assumed to be right; empty for the default.
        timeout: Longest cell in seconds; None for no limit.
        exclude: Cells that do not exist.
        expect: Expected outcomes of cells; a cell that none names is expected to be healthy.
    """

    models: Mapping[str, BatchModel]
    commands: Mapping[str, BatchCommand]
    feeds: Mapping[str, BatchFeed] = {}
    targets: Mapping[str, BatchTarget] = {}
    reference: str = ""
    timeout: float | None = None
    exclude: tuple[CellPattern, ...] = ()
    expect: tuple[Expectation, ...] = ()
    format: str = FORMAT


_TABLES: Mapping[str, tuple[type[msgspec.Struct], str]] = {
    "models": (BatchModel, "file"),
    "feeds": (BatchFeed, "inputs"),
    "targets": (BatchTarget, "engine"),
    "commands": (BatchCommand, "run"),
}
"""Table to the class of its entries, and the key that an entry without keys fills."""
_LISTS: Mapping[str, type[msgspec.Struct]] = {"exclude": CellPattern, "expect": Expectation}


def read_batch_file(path: Path) -> BatchFile:
    """Read a batch file, ``.toml`` or YAML.

    Raises:
        DataError: When it cannot be read (``batch-file-unreadable``), has an unknown key (``batch-file-key``), a wrong
            value (``batch-file-invalid``), a name that is none (``batch-file-name``) or another format
            (``format-unknown``).
        UsageError: When it is YAML and PyYAML is missing (``yaml-missing``).
    """
    data = _parsed(path)
    if not isinstance(data, dict):
        raise _invalid(path, "it holds no table of models and commands")
    _check_keys(path, data, BatchFile, "the file")
    if data.get("format", FORMAT) != FORMAT:
        raise DataError(
            f"{path} has format {data['format']!r}, expected '{FORMAT}'",
            slug="format-unknown",
            cure="write it as docs/batch.md describes, or use the version of TensorTriage that it is for",
        )
    plain = {**data, **{name: _table(path, name, data[name]) for name in _TABLES if name in data}}
    for name, kind in _LISTS.items():
        for entry in data.get(name) or ():
            if isinstance(entry, dict):
                _check_keys(path, entry, kind, f"'{name}'")
    try:
        found = msgspec.convert(plain, BatchFile, strict=True)
    except msgspec.ValidationError as error:
        raise _invalid(path, str(error)) from error
    for rule in found.expect:
        _check_verdicts(path, rule)
    return found


def words_of(words: Words) -> tuple[str, ...]:
    """Return words as a command line has them."""
    return tuple(str(word) for word in words)


def _parsed(path: Path) -> Any:
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8")
        if path.suffix.lower() == ".toml":
            return tomllib.loads(text)
        return _from_yaml(text)
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and TOMLDecodeError among them
        reason = str(error)
    raise DataError(
        f"{path} is not a readable batch file: {reason}",
        slug="batch-file-unreadable",
        cure="give a TOML file (.toml) or a YAML file as docs/batch.md shows",
    )


def _from_yaml(text: str) -> Any:
    """Return the contents of a YAML text, without aliases, which can blow it up, and with each key once."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise UsageError(
            "the batch file is YAML, and PyYAML is not installed",
            slug="yaml-missing",
            cure="pip install 'tensortriage[batch]', or write it as TOML",
        ) from error
    try:
        _refuse_repeats(yaml.compose(text, Loader=yaml.SafeLoader), set())
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _refuse_repeats(node: Any, seen: set[int]) -> None:
    if node is None or isinstance(node.value, str):
        return
    if id(node) in seen:
        raise ValueError(f"line {node.start_mark.line + 1} is used by an alias (*NAME); write it out")
    seen.add(id(node))
    keys: set[str] = set()
    for entry in node.value:
        key, child = entry if isinstance(entry, tuple) else (None, entry)
        if key is not None and isinstance(key.value, str):
            if key.value in keys:
                raise ValueError(f"line {key.start_mark.line + 1}: '{key.value}' is given twice")
            keys.add(key.value)
        _refuse_repeats(child, seen)


def _table(path: Path, name: str, table: object) -> object:
    """Return a table with every entry written out; a list of commands names each after itself."""
    kind, short = _TABLES[name]
    if name == "commands" and isinstance(table, list) and all(isinstance(word, str) for word in table):
        table = {word: {"run": word} for word in table}
    if not isinstance(table, dict):
        return table
    found = {}
    for key, entry in table.items():
        if not isinstance(key, str) or not _NAME.fullmatch(key):
            raise DataError(
                f"{path}: {key!r} in '{name}' is not a name",
                slug="batch-file-name",
                cure="begin names with a letter or digit, followed by these, blanks, and . _ + - (in YAML, quote "
                "numbers and words such as no)",
            )
        if isinstance(entry, dict):
            _check_keys(path, entry, kind, f"{name}.{key}")
        elif isinstance(entry, str):
            entry = {short: [entry] if name == "feeds" else entry}
        found[key] = entry
    return found


def _check_keys(path: Path, table: Mapping[object, object], kind: type[msgspec.Struct], where: str) -> None:
    known = kind.__struct_fields__
    for key in table:
        if key not in known:
            raise DataError(
                f"{path}: {where} has an unknown key '{key}'",
                slug="batch-file-key",
                cure=did_you_mean(str(key), known, otherwise=f"known are {', '.join(known)}"),
            )


def _check_verdicts(path: Path, rule: Expectation) -> None:
    known = [kind.value for kind in VerdictKind]
    for word in (rule.verdict,) if isinstance(rule.verdict, str) else rule.verdict:
        if word not in known:
            raise _invalid(path, f"'{word}' is no verdict", did_you_mean(word, known, otherwise=", ".join(known)))
    given = [bool(rule.verdict), rule.match is not None, rule.exit != ()]
    if sum(given) > 1:
        raise _invalid(path, "an entry of 'expect' has more than one of verdict, match and exit")


def _invalid(path: Path, reason: str, cure: str = "") -> DataError:
    return DataError(
        f"{path} is not a valid batch file: {reason}",
        slug="batch-file-invalid",
        cure=cure or "docs/batch.md lists every key with its values",
    )
