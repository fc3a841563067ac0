"""Pieces that do not fail; ``--min-good`` writes one of them."""

from tensortriage.runs.commands.phases import Phases
from tensortriage.search.problem import CandidateOutcome
from tensortriage.search.search_result import Progress


class PassingPieces:
    """Passing pieces; the one wanted is the largest below the smallest failing one, else the smallest above.

    Where a search has phases, that is looked for in the last phase that knows a passing piece, as Polygraphy does.

    Args:
        phases: Subject of the search, for messages.
    """

    def __init__(self, phases: Phases) -> None:
        self.phases = phases
        self._passing: dict[str, dict[int, tuple[str, ...]]] = {}
        self._failing: dict[str, int] = {}

    def take(self, progress: Progress[str]) -> None:
        """Take the answer about a piece."""
        phase, size = self.phases.name, len(progress.candidate)
        if progress.verdict.outcome is CandidateOutcome.PASS:
            self._passing.setdefault(phase, {})[size] = progress.candidate
        elif progress.verdict.same:
            self._failing[phase] = min(size, self._failing.get(phase, size))

    def nearest(self) -> tuple[str, ...] | None:
        """Return the passing piece that is needed; None when none passed."""
        for phase, by_size in reversed(self._passing.items()):
            smallest = self._failing.get(phase, 0)
            below = [size for size in by_size if size < smallest]
            return by_size[max(below)] if below else by_size[min(by_size)]
        return None
