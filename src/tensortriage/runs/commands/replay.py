"""Verdicts of earlier checks, to be used again: Polygraphy's replay file, bound to its model and command.

The layout is Polygraphy's: one ``IterationContext`` per iteration, and a twin ``NAME_skip_current.json`` in which the
check that is about to run has already failed, for checks that take the whole machine down; it stays, as there. A replay
of another model would quietly steer the search to a wrong result, so the file also holds the digest of its model and
command, and every iteration that of its candidate. Polygraphy's own files work where there is but one candidate, and
where candidates come in Polygraphy's order: there phase, number and size identify them.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from tensortriage.errors import DataError, StoreError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.files import read_regular
from tensortriage.values.serial import dump, from_json

FORMAT = "tensortriage.replay/1"
BINDING = "tensortriage"
"""Key, next to those of the iterations, of the digest of the replay's model and command."""

OutcomeWord = Literal["same", "other", "pass", "unresolved"]
"""The words of `tensortriage.search.problem.CandidateOutcome`."""


@frozen_dataclass
class Entry:
    """One iteration.

    Attributes:
        iteration: Number, from 0.
        phase: ``outputs`` or ``inputs`` in the modes that Polygraphy has; may be empty.
        candidate: Content key of the checked candidate.
        attempt: How often that had been checked before.
        nodes: Its number of nodes; None without a model.
        success: Whether the check passed.
        outcome: The verdict in a word.
        signature: How it failed.
    """

    iteration: int
    phase: str
    candidate: str
    attempt: int
    nodes: int | None
    success: bool
    outcome: str
    signature: str = ""

    @property
    def is_foreign(self) -> bool:
        """Whether Polygraphy wrote it; it then names no candidate."""
        return not self.candidate

    @property
    def key(self) -> str:
        """Polygraphy's name of the iteration."""
        return f"_N{self.iteration}" + (f"_{self.phase}" if self.phase else "")


class Replay:
    """A replay being written.

    Args:
        path: The file, rewritten after every iteration.
        bound_to: Digest of the model and the command.
    """

    def __init__(self, path: Path, bound_to: str) -> None:
        self._path = path
        self._content: dict[str, Any] = {BINDING: {"format": FORMAT, "bound_to": bound_to}}

    @property
    def twin(self) -> Path:
        """The file in which the current check has failed already."""
        return self._path.with_name(f"{self._path.stem}_skip_current{self._path.suffix}")

    def about_to_check(self, entry: Entry) -> None:
        """Write the twin: an iteration that counts as failed, should the check end everything."""
        dump(_sealed({**self._content, entry.key: _encoded(entry)}), self.twin)

    def add(self, entry: Entry) -> None:
        """Write an iteration."""
        self._content[entry.key] = _encoded(entry)
        dump(_sealed(self._content), self._path)


def load_replay(path: Path, bound_to: str, *, unbound: bool = False) -> tuple[Entry, ...]:
    """Read a replay in the order of its iterations.

    Args:
        path: The file.
        bound_to: Digest of the model and the command.
        unbound: Whether to accept one without the digest of its model and command, such as Polygraphy's.

    Raises:
        DataError: When the file is missing or damaged (``replay-unreadable``), or belongs to another model or command
            (``replay-foreign``); Polygraphy's files lack that digest.
    """
    try:
        content = from_json(read_regular(path), dict[str, Any], source=str(path))
    except OSError as error:
        raise DataError(
            f"replay {path} cannot be read: {error.strerror or error}",
            slug="replay-unreadable",
            cure="give --load-debug-replay the file that --save-debug-replay wrote",
        ) from error
    except StoreError as error:
        raise DataError(error.message, slug="replay-unreadable", cure="remove it and run the checks again") from error
    binding = content.pop(BINDING, None)
    if unbound and binding is None:
        return _entries(content, path)
    if not isinstance(binding, dict) or binding.get("format") != FORMAT:
        raise DataError(
            f"replay {path} does not say which model and command it belongs to",
            slug="replay-foreign",
            cure="only replays that triage wrote can be loaded; run the checks again with --save-debug-replay",
        )
    if binding.get("bound_to") != bound_to:
        raise DataError(
            f"replay {path} belongs to another model or another check command",
            slug="replay-foreign",
            cure="load it with the model and the command that it was made with",
        )
    if binding.get("crc32") != _checksum(content):
        raise DataError(
            f"replay {path} is damaged: its checksum is wrong",
            slug="replay-unreadable",
            cure="remove it and run the checks again",
        )
    return _entries(content, path)


def _entries(content: Mapping[str, Any], path: Path) -> tuple[Entry, ...]:
    try:
        return tuple(_entry(key, value) for key, value in msgspec.convert(content, dict[str, _Context]).items())
    except msgspec.ValidationError as error:
        raise DataError(
            f"replay {path} is damaged: {error}", slug="replay-unreadable", cure="remove it and run the checks again"
        ) from error


def _sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a replay with the checksum of its iterations."""
    entries = {key: value for key, value in content.items() if key != BINDING}
    return {BINDING: {**content[BINDING], "crc32": _checksum(entries)}, **entries}


def _checksum(entries: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(entries, sort_keys=True).encode())


def _encoded(entry: Entry) -> Mapping[str, Any]:
    state: dict[str, Any] = {} if entry.nodes is None else {"num_nodes": entry.nodes}
    state |= {"candidate": entry.candidate, "attempt": entry.attempt}
    state |= {"outcome": entry.outcome, "signature": entry.signature}
    return {
        "state": state,
        "iteration_info": {"iteration": entry.iteration},
        "success": entry.success,
        "polygraphy_class": "IterationContext",
    }


@frozen_dataclass
class _State:
    candidate: str = ""
    attempt: int | None = None
    num_nodes: int | None = None
    outcome: OutcomeWord | None = None
    signature: str = ""


@frozen_dataclass
class _IterationInfo:
    iteration: int


@frozen_dataclass
class _Context:
    """One iteration in the file; fields that Polygraphy does not write have defaults."""

    state: _State
    iteration_info: _IterationInfo
    success: bool | None


def _entry(key: str, context: _Context) -> Entry:
    state, iteration = context.state, context.iteration_info.iteration
    return Entry(
        iteration=iteration,
        phase=key.removeprefix(f"_N{iteration}").removeprefix("_"),
        candidate=state.candidate,
        attempt=iteration if state.attempt is None else state.attempt,
        nodes=state.num_nodes,
        success=bool(context.success),
        outcome=state.outcome or ("pass" if context.success else "same"),
        signature=state.signature,
    )
