"""Limits for a file that rounds a network, compared with results of the network itself.

What a quantized or narrow file may be off by is what its own rounding costs, provided that it stands for the network at
all (`tensortriage.envelope.stands_for`). Neither enters the limit what the target made of it.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.within import Limit, half_at_most
from tensortriage.envelope.stands_for import StandsFor, enough, is_rounded
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab

Arrays = Mapping[str, np.ndarray]


class RewrittenJudge:
    """Holds a file against results of the network that it is said to stand for, feed after feed.

    Args:
        file: The file.
        lab: Where it is evaluated.
    """

    def __init__(self, file: Model, *, lab: Lab) -> None:
        self._file, self._lab = file, lab
        self._seen: dict[str, tuple[Feed, Arrays]] = {}
        self._known: tuple[int, StandsFor | None] = 0, None

    def limits(self, feed: Feed, network: Arrays, *, could_be_own: bool = False) -> dict[str, Limit]:
        """Return the largest error of each output; none where the file is another network's, or rounds nothing.

        All feeds that were seen are held against the network together, so that chance says less and less.

        Args:
            feed: A feed.
            network: The network's outputs on it.
            could_be_own: Whether they may be the file's own: then only those nearer to the network's have limits.
        """
        if not is_rounded(self._file):
            return {}
        if feed.name not in self._seen and not enough([outputs for _, outputs in self._seen.values()]):
            own = {spec.name for spec in self._file.outputs}
            self._seen[feed.name] = feed, {name: array for name, array in network.items() if name in own}
        standing = self._standing()
        if standing is None or not standing.is_same:
            return {}
        return {
            name: half_at_most(Limit(each.explained, Basis.FORMAT))
            for name, each in standing.outputs.items()
            if each.is_of_network or not could_be_own
        }

    def _standing(self) -> StandsFor | None:
        if self._known[0] != len(self._seen):
            try:
                found = StandsFor.of(self._lab.remembering, self._file, list(self._seen.values()), {})
            except (EngineError, UsageError, DataError):
                found = None
            self._known = len(self._seen), found
        return self._known[1]
