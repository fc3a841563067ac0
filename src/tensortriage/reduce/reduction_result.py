"""The result of a reduction; the content of ``reduction.json``."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.provenance.origin import UNKNOWN, NodeOrigin
from tensortriage.reduce.failure import Failure
from tensortriage.values.result import Result, record
from tensortriage.values.text import count

REDUCTION_FORMAT = "tensortriage.reduction/1"


@frozen_dataclass
class KeptNode:
    """A node of the result.

    Attributes:
        name: Its name, as in the model.
        outputs: Names of its results.
        without: Outcome of the rest without it: a word of `tensortriage.search.problem.CandidateOutcome`,
            or empty when that was not tried.
        origin: Module, class and line of the source network from which it was made, as far as the file holds them.
    """

    name: str
    op_type: str
    outputs: tuple[str, ...]
    without: str = ""
    origin: NodeOrigin = UNKNOWN


@frozen_dataclass
class OtherFailure:
    """A piece that fails in another way.

    Attributes:
        nodes: Number of its nodes.
        signature: Its failure, as a word.
        detail: One line.
        path: Its model, relative to the case; empty when it could not be written.
    """

    nodes: int
    signature: str
    detail: str
    path: str = ""


@frozen_dataclass
class Shrunk:
    """A part other than the nodes that was made smaller, or could not be.

    Attributes:
        what: ``outputs``, ``inputs``, ``samples``, ``sizes``, ``weights``, ``values``.
        done: Whether it is smaller now.
        detail: Sizes before and after, or the obstacle.
    """

    what: str
    done: bool
    detail: str


@frozen_dataclass
class Opened:
    """A node with a body, or a call of a function, among the nodes that could not be left out.

    Attributes:
        what: ``then_branch``, ``else_branch``, ``body`` or ``function``.
        done: Whether the search went on inside.
        detail: Its replacement, or the reason why there is none.
    """

    node: str
    op_type: str
    what: str
    done: bool
    detail: str


@frozen_dataclass(kw_only=True, repr=False)
class Reduction(Result):
    """A finished reduction.

    Attributes:
        asked: The oracle: ``engines``, ``check`` or ``person``.
        command: The command line.
        model: Path of the model.
        sha256: Its fingerprint.
        nodes_before: Nodes it has, Constant nodes not counted.
        kept: Nodes of the result.
        minimality: ``one-minimal``, ``block-minimal`` or ``budget`` (the smallest found so far).
        block_items: Size of the blocks, when block-minimal.
        stop: Why the search ended: ``finished``, ``check-budget``, ``time-budget`` or ``interrupted``.
        checks: Checks that the result rests on.
        repeats: Further checks that only confirmed answers in the end.
        cache_hits: Checks answered from an earlier run in the same case.
        candidates: Number of different pieces that were checked.
        seconds: Wall-clock time of the search.
        failed_runs: Failed runs of the result where they were counted, else of the whole.
        runs: All of these runs.
        confidence: Chance that every kept node is needed; None where it was not computed.
        signature: Failure of the whole, as a word.
        failure: The failure in figures, for engines.
        local: Failure of the result by itself, for engines.
        verified: Whether the written result failed again, in a process of its own; None when it was not run.
        otherwise: Its outcome instead; empty where it failed.
        shrunk: Other parts that were made smaller.
        opened: Outcomes of opening the nodes with bodies.
        others: Pieces that fail in another way.
        files: Written files by their role: ``result``, ``min-good``, ``repro``.
    """

    asked: str
    command: str
    model: str
    sha256: str
    nodes_before: int
    kept: tuple[KeptNode, ...]
    minimality: str
    block_items: int
    stop: str
    checks: int
    cache_hits: int
    candidates: int
    seconds: float
    failed_runs: int
    runs: int
    confidence: float | None
    signature: str
    failure: Failure | None = None
    local: Failure | None = None
    verified: bool | None = None
    otherwise: str = ""
    shrunk: tuple[Shrunk, ...] = ()
    opened: tuple[Opened, ...] = ()
    others: tuple[OtherFailure, ...] = ()
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    repeats: int = 0
    format: str = REDUCTION_FORMAT

    @property
    def in_short(self) -> str:
        """How small the piece is."""
        names = ", ".join(node.name for node in self.kept[:8])
        return f"{count(self.nodes_before, 'node')} -> {len(self.kept)}: {names}"

    @property
    def records(self) -> Sequence[dict[str, Any]]:
        """A row for each node that is left."""
        return [record(node) for node in self.kept]


class Effort(enum.Enum):
    """The work that is done once the nodes are found."""

    FULL = "full"
    WRITE = "write"
    """The result is written as it is: the user has no more patience."""


@frozen_dataclass
class ReductionFinish:
    """The state of the finished result.

    Attributes:
        local: Failure by itself, in figures, if known.
        verified: Whether the written result was seen to fail again; None when it was not run.
        shrunk: Other parts that were made smaller.
        repro: Folder of the repro; None without one.
        otherwise: Outcome of the repro where it did not fail again; empty where it did.
    """

    local: Failure | None = None
    verified: bool | None = None
    shrunk: tuple[Shrunk, ...] = ()
    repro: Path | None = None
    otherwise: str = ""
