"""What a reduction ends with; the content of ``reduction.json``."""

import dataclasses
import enum
from collections.abc import Mapping
from pathlib import Path

from tensortriage.model.provenance.origin import UNKNOWN, NodeOrigin
from tensortriage.reduce.failure import Failure

REDUCTION_FORMAT = "tensortriage.reduction/1"


@dataclasses.dataclass(frozen=True, slots=True)
class KeptNode:
    """A node of the result.

    Attributes:
        name: Its name, as in the model.
        op_type: Its operator.
        outputs: What it makes.
        without: What the rest did when its item was removed: a word of `tensortriage.search.problem.CandidateOutcome`,
            or empty when that was not asked.
        origin: Module, class and line of the source network from which it was made, as far as the file says.
    """

    name: str
    op_type: str
    outputs: tuple[str, ...]
    without: str = ""
    origin: NodeOrigin = UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True)
class OtherFailure:
    """A piece that fails in another way.

    Attributes:
        nodes: Number of its nodes.
        signature: How it fails.
        detail: One line.
        path: Its model, relative to the case; empty when it could not be written.
    """

    nodes: int
    signature: str
    detail: str
    path: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Shrunk:
    """Something besides the nodes that was made smaller, or could not be.

    Attributes:
        what: ``outputs``, ``inputs``, ``samples``, ``sizes``, ``weights``, ``values``.
        done: Whether it is smaller now.
        detail: From what to what, or why not.
    """

    what: str
    done: bool
    detail: str


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
    """A node with a body, or a call of a function, that was left when no node could be left out.

    Attributes:
        node: Its name.
        op_type: Its operator.
        what: ``then_branch``, ``else_branch``, ``body`` or ``function``.
        done: Whether the search went on inside.
        detail: What took its place, or why nothing did.
    """

    node: str
    op_type: str
    what: str
    done: bool
    detail: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """A finished reduction.

    Attributes:
        asked: Who answered: ``engines``, ``check`` or ``person``.
        command: The command line.
        model: Path of the model.
        sha256: Its fingerprint.
        nodes_before: Nodes it has, Constant nodes not counted.
        kept: Nodes of the result.
        minimality: ``one-minimal``, ``block-minimal`` or ``budget`` (the smallest found so far).
        block_items: Size of the blocks, when block-minimal.
        stop: Why the search ended: ``finished``, ``check-budget``, ``time-budget`` or ``interrupted``.
        checks: Checks that the result rests on.
        repeats: Checks beside them that only confirmed answers in the end.
        cache_hits: Those answered from an earlier run in the same case.
        candidates: Different pieces asked about.
        seconds: Wall-clock time of the search.
        failed_runs: How often the result failed when that was measured, else the whole.
        runs: Of how many runs.
        confidence: Chance that every kept node is needed; None where that was not shown.
        signature: How the whole fails.
        failure: The same in figures, when engines were asked.
        local: How the result fails by itself, when engines were asked.
        verified: Whether the written result failed again, in a process of its own; None when that was not asked.
        otherwise: What it did instead; empty where it failed.
        shrunk: What else was made smaller.
        opened: What became of the nodes with bodies that were left.
        others: Pieces that fail in another way.
        files: Files written, by what they are: ``result``, ``min-good``, ``repro``.
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


class Effort(enum.Enum):
    """How much is done once the nodes are found."""

    FULL = "full"
    WRITE = "write"
    """The result is written as it is: the user has no more patience."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReductionFinish:
    """What became of the result.

    Attributes:
        local: How it fails by itself, in figures, if that is known.
        verified: Whether the written result was seen to fail again; None when that was not asked.
        shrunk: What else was made smaller.
        repro: Folder of the repro; None without one.
        otherwise: What the repro did when it was run but fail again; empty where it failed.
    """

    local: Failure | None = None
    verified: bool | None = None
    shrunk: tuple[Shrunk, ...] = ()
    repro: Path | None = None
    otherwise: str = ""
