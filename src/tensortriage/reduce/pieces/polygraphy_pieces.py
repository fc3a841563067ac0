"""Pieces as Polygraphy cuts them: fed at their first node, with the other branches frozen to their recorded values.

A piece that starts at one node may need a value of a branch that was cut off. It becomes a constant then: the whole
model's value on the sample. So the check needs data for the inputs of one node only, which fit the constants when they
come from that sample; with several samples no constant fits them all, and such values stay inputs.
"""

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.engines.spec import PLAIN
from tensortriage.errors import EngineError, ModelError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_inferred_shapes
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.request import Ends
from tensortriage.runs.lab import Lab
from tensortriage.values.spec import ValueSpec

_logger = logging.getLogger(__name__)


class PolygraphyPieces(Pieces):
    """Cuts candidates out of one model.

    Args:
        model: The model.
        specs: Types and shapes of its values.
        samples: Gives the data that frozen values come from.
        lab: Runs the model for them.
    """

    def __init__(
        self,
        model: Model,
        *,
        specs: Mapping[str, ValueSpec],
        samples: Callable[[], Iterator[Feed]],
        lab: Lab,
    ) -> None:
        super().__init__(model, specs=specs, ends=Ends.BOTH)
        self._samples = samples
        self._lab = lab
        self._feed: Feed | None = None
        self._asked = False
        self._seen: dict[str, np.ndarray] = {}

    def cut(self, nodes: Sequence[str], *, marked: bool = False) -> Model:
        """See `Pieces.cut`; branches that were cut off are constants, and outputs have the types that can be known."""
        piece = super().cut(nodes, marked=marked)
        if self.is_whole(nodes):
            return piece
        own = {spec.name for spec in self.model.inputs} | self._fed(nodes)
        constants = self._values([spec.name for spec in piece.inputs if spec.name not in own])
        if constants:
            piece = freeze(piece, constants)
        if any(spec.dtype is None or spec.shape is None for spec in piece.outputs):
            piece = with_inferred_shapes(piece)
        return piece

    def _fed(self, nodes: Sequence[str]) -> set[str]:
        """Return the inputs of the first node from which all others follow; all values when there is none."""
        inside = frozenset(item for node in nodes if (item := self.item_of(node)) is not None)
        for item in self.items:
            if item in inside and self.starting_at(item, inside) == inside:
                return set(self.model.graph.node(item).uses)
        return {value for node in nodes for value in self.model.graph.node(node).uses}

    def _values(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return values of the whole model on the one sample; none when it cannot be run."""
        missing = [name for name in names if name not in self._seen]
        feed = self._sample() if missing else None
        if feed is not None:
            try:
                self._seen.update(self._lab.stream(PLAIN, self.model, feed, missing, specs=self.specs))
            except (EngineError, ModelError) as error:
                _logger.warning("branches that are cut off stay inputs: %s", error.message)
                self._feed = None
        return {name: self._seen[name] for name in names if name in self._seen}

    def _sample(self) -> Feed | None:
        if not self._asked:
            self._asked = True
            found = list(itertools.islice(self._samples(), 2))
            self._feed = found[0] if len(found) == 1 else None
            if len(found) > 1:
                _logger.warning("branches that are cut off stay inputs: several samples, and no constant fits them all")
        return self._feed
