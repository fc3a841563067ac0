"""How a reduction chooses pieces: three ways of ours, two of Polygraphy's."""

import enum

from tensortriage.reduce.pieces.pieces import Ends, Pieces
from tensortriage.reduce.pieces.polygraphy_modes import Phases, bisect, linear
from tensortriage.search.dialogue import Pass
from tensortriage.search.driver import TO_BLOCKS, TO_ITEMS


class ReduceMode(enum.Enum):
    """How pieces are chosen; the value is the word on the command line."""

    AUTO = "auto"
    BLOCKS = "blocks"
    BISECT = "bisect"
    LINEAR = "linear"

    @property
    def is_polygraphys(self) -> bool:
        """Whether it does as Polygraphy does."""
        return self in (ReduceMode.BISECT, ReduceMode.LINEAR)

    def passes(self, pieces: Pieces, ends: Ends, phases: Phases) -> tuple[Pass[str], ...]:
        """Return what it does."""
        if self is ReduceMode.BISECT:
            return (bisect(pieces, ends, phases),)
        if self is ReduceMode.LINEAR:
            return (linear(pieces, ends, phases),)
        return TO_BLOCKS if self is ReduceMode.BLOCKS else TO_ITEMS

    def ends(self, ends: Ends) -> Ends:
        """Return how candidates are completed: the modes of Polygraphy choose theirs complete."""
        return Ends.BOTH if self.is_polygraphys else ends
