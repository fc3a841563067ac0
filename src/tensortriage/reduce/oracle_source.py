"""What a reduction needs from whoever judges pieces: engines, a command, or a person."""

import dataclasses
import enum
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tensortriage.reduce.failure import Failure
from tensortriage.reduce.pieces.piece_search import PieceOracle
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.reduction_result import Shrunk
from tensortriage.search.answers.answer_cache import Cache
from tensortriage.search.execution.executors import Executor
from tensortriage.search.search_result import SearchResult
from tensortriage.search.statistics.repeats import Rate, Repeats


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
    """

    local: Failure | None = None
    verified: bool | None = None
    shrunk: tuple[Shrunk, ...] = ()
    repro: Path | None = None


class Asking(Protocol):
    """One way of asking."""

    @property
    def word(self) -> str:
        """``engines``, ``check`` or ``person``."""
        ...

    @property
    def pieces(self) -> Pieces:
        """The model and its items."""
        ...

    @property
    def oracle(self) -> PieceOracle:
        """Says what a piece does."""
        ...

    @property
    def identity(self) -> str:
        """Digest of all that answers depend on besides the piece."""
        ...

    @property
    def cache(self) -> Cache:
        """Where answers are kept."""
        ...

    @property
    def repeats(self) -> Repeats:
        """How often things are asked."""
        ...

    def executor(self) -> AbstractContextManager[Executor[str] | None]:
        """Give where the checks of the search run."""
        ...

    def settle(self, premise: SearchResult[str]) -> str:
        """Return the identity as it is after the premise."""
        ...

    def suspicion(self) -> Mapping[str, float]:
        """Return what speaks against each node, by name; after the premise."""
        ...

    def failure(self) -> Failure | None:
        """Return how the whole fails, in figures, if that is known."""
        ...

    def finish(self, nodes: tuple[str, ...], result: Path | None, rate: Rate, effort: Effort) -> ReductionFinish:
        """Shrink what is left, write the result, and see that it fails again.

        Args:
            nodes: Nodes of the result.
            result: File to write; None for none.
            rate: How often it fails.
            effort: How much is done.
        """
        ...

    def close(self) -> None:
        """Release everything."""
        ...
