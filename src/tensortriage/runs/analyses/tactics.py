"""Files of the tactics that an engine chose: our own, and those of other tools, which an engine's package reads.

Ours is ``tensortriage.tactics/1``: ``engine`` (spec), ``choices`` (see `Choice`). It is the one that builds pin.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from tensortriage.engines.base import Choice, Plan
from tensortriage.errors import DataError, StoreError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.check_cache import digest
from tensortriage.values.files import read_regular
from tensortriage.values.registered import registered
from tensortriage.values.serial import dump, from_json

TACTICS_FORMAT = "tensortriage.tactics/1"
READERS = "tensortriage.tactics"
"""Entry-point group of functions that read other tools' files: they return the kind of file, and its choices."""


@frozen_dataclass
class TacticRecord:
    """The choices of an engine in one build.

    Attributes:
        engine: Spec of the engine, or where the choices come from.
        choices: In the order they were made.
        format: Version of this file format.
    """

    engine: str
    choices: tuple[Choice, ...]
    format: str = TACTICS_FORMAT


def save_record(record: TacticRecord, path: Path) -> None:
    """Write a record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    dump(record, path)


def load_record(path: Path) -> TacticRecord:
    """Read a record of ours, a tactic replay of Polygraphy, or a verbose log of TensorRT.

    Raises:
        DataError: When the file is missing or none of these (``tactics-unreadable``).
    """
    try:
        text = read_regular(path).decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable(
            path,
            "is binary: a timing cache names no kernels",
            "give the verbose log of the build that used the cache (trtexec --verbose), or a file of --save-tactics",
        ) from None
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror or error}", "check the path") from error
    in_json = text.lstrip().startswith("{")
    try:
        if in_json and json.loads(text).get("format") == TACTICS_FORMAT:
            return from_json(text, TacticRecord, source=str(path))
        for reader in registered(READERS).values():
            kind, choices = reader.load()(text)
            if choices:
                return TacticRecord(f"{kind} {path.name}", tuple(choices))
    except StoreError as error:  # says itself which file is damaged
        raise _unreadable(path, error.message.removeprefix(f"{path} "), "record the tactics again") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _unreadable(path, f"is damaged: {error}", "record the tactics again") from error
    if in_json:
        raise _unreadable(path, "is JSON of another kind", "give a file of --save-tactics or a tactic replay")
    raise _unreadable(
        path,
        "holds no tactics",
        "give a file of --save-tactics, a tactic replay, or a verbose log of a build with an editable timing cache",
    )


def features(choices: Sequence[Choice], plan: Plan | None) -> tuple[tuple[str, str], ...]:
    """Return the features of a build as pairs (layer, kernel): of its tactics, else of its plan."""
    if choices:
        return tuple((choice.layer, choice.label) for choice in choices)
    regions = plan.regions if plan else ()
    return tuple((", ".join(r.nodes) or r.name, f"{r.implementation} {r.precision}".strip()) for r in regions)


def feature_digest(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a short digest of a build's choices, independent of order; empty when none are known."""
    return digest(sorted(list(pair) for pair in pairs))[:12] if pairs else ""


def _unreadable(path: Path, what: str, cure: str) -> DataError:
    return DataError(f"{path} {what}", slug="tactics-unreadable", cure=cure)
