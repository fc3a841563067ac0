"""Files that say which tactics an engine chose: our own, Polygraphy's replays, and TensorRT's verbose logs.

Ours is ``tensortriage.tactics/1``: ``engine`` (spec), ``choices`` (see `Choice`). It is what is pinned, so a replay of
Polygraphy is put into its words; the log of a build with an editable timing cache gives keys and hashes of that cache.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensortriage.engines.base import Choice, Plan
from tensortriage.errors import DataError, StoreError
from tensortriage.runs.check_cache import digest
from tensortriage.values.files import read_regular
from tensortriage.values.serial import dump, from_json
from tensortriage_worker.tensorrt.tactics import hash_word, rows_of_log

TACTICS_FORMAT = "tensortriage.tactics/1"
_REPLAY, _ALGORITHM = "TacticReplayData", "Algorithm"


@dataclasses.dataclass(frozen=True, slots=True)
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

    @property
    def labels(self) -> Mapping[str, str]:
        """The choice at each layer."""
        return {choice.layer: choice.label for choice in self.choices}


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
    if text.lstrip().startswith("{"):
        return _from_json(text, path)
    rows = rows_of_log(text)
    if not rows:
        raise _unreadable(
            path,
            "holds no tactics",
            "give a file of --save-tactics, a tactic replay, or a verbose log of a build with an editable timing cache",
        )
    return TacticRecord(f"log {path.name}", tuple(_choice(row) for row in rows))


def features(choices: Sequence[Choice], plan: Plan | None) -> tuple[tuple[str, str], ...]:
    """Return the features of a build as pairs (layer, kernel): of its tactics, else of its plan."""
    if choices:
        return tuple((choice.layer, choice.label) for choice in choices)
    regions = plan.regions if plan else ()
    return tuple((", ".join(r.nodes) or r.name, f"{r.implementation} {r.precision}".strip()) for r in regions)


def feature_digest(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a short digest of what a build is like, in whatever order; empty when nothing is known."""
    return digest(sorted(list(pair) for pair in pairs))[:12] if pairs else ""


def _from_json(text: str, path: Path) -> TacticRecord:
    try:
        content = json.loads(text)
        if content.get("polygraphy_class") == _REPLAY:
            rows = [_from_replay(layer, algorithm) for layer, algorithm in content["replay"].items()]
            return TacticRecord(f"Polygraphy replay {path.name}", tuple(rows))
        if content.get("format") != TACTICS_FORMAT:
            raise _unreadable(path, "is JSON of another kind", "give a file of --save-tactics or a tactic replay")
        return from_json(text, TacticRecord, source=str(path))
    except StoreError as error:  # says itself which file is damaged
        raise _unreadable(path, error.message.removeprefix(f"{path} "), "record the tactics again") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _unreadable(path, f"is damaged: {error}", "record the tactics again") from error


def _from_replay(layer: str, algorithm: Mapping[str, Any]) -> Choice:
    """Return an algorithm of Polygraphy (0.46 and later) in the words that our adapter takes back."""
    if algorithm.get("polygraphy_class", _ALGORITHM) != _ALGORITHM:
        raise ValueError(f"layer '{layer}' holds no algorithm")
    return Choice(
        layer=layer,
        tactic=hash_word(algorithm["tactic"]),
        implementation=hash_word(algorithm["implementation"]),
        inputs=tuple(map(_tensor, algorithm["inputs"])),
        outputs=tuple(map(_tensor, algorithm["outputs"])),
    )


def _tensor(info: Mapping[str, Any]) -> str:
    told = [str(info[name]) for name in ("vectorized_dim", "components_per_element") if info.get(name) is not None]
    strides = "x".join(str(stride) for stride in info["strides"])
    return ":".join([str(info["dtype"]).rpartition(".")[2].lower(), strides, *told])


def _choice(row: Mapping[str, Any]) -> Choice:
    return Choice(
        layer=row["layer"],
        tactic=row["tactic"],
        implementation=row["implementation"],
        milliseconds=row["milliseconds"],
        key=row["key"],
    )


def _unreadable(path: Path, what: str, cure: str) -> DataError:
    return DataError(f"{path} {what}", slug="tactics-unreadable", cure=cure)
