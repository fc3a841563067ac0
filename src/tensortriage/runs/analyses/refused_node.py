"""Which node an engine refuses, where its message names none: the model builds without it, and with it does not.

Messages of converters and runtimes name layers and operators of their own. So the model is built up to its middle, and
so on: of a thousand nodes ten builds are enough. A refusal in other words has another reason, the end of the piece for
example, and proves nothing.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, ModelError
from tensortriage.model.cutting.cut_units import inseparable_units
from tensortriage.model.cutting.extract import extract
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.runs.outcome import OK, Outcome, OutcomeKind
from tensortriage.values.spec import ValueSpec

_OWN = re.compile(r"\S*/\S*|\d+|'[^']*'")
"""Parts of a message that name one file or one numbered layer."""


@dataclasses.dataclass(frozen=True)
class Refused:
    """A model that an engine refuses to build.

    Attributes:
        whole: How it ended.
        specs: Types and shapes of the model's values.
        value: Returns the numbers of an input, or of a value inside.
    """

    model: Model
    spec: EngineSpec
    whole: Outcome
    specs: Mapping[str, ValueSpec]
    value: Callable[[str], np.ndarray]

    def node(self, lab: Lab) -> Node | None:
        """Return the node with which the refusal begins; None if unknown."""
        units = inseparable_units(self.model)
        if self.whole.kind is not OutcomeKind.BUILD_FAILED or not units:
            return None
        builds, refused, sure = 0, len(units), True
        while refused - builds > 1:
            middle = (builds + refused) // 2
            found = self._built(lab, units[:middle])
            if not found.ok and _words(found) == _words(self.whole):
                refused = middle
            else:
                builds, sure = middle, found.ok
        if not builds and len(units) > 1:  # perhaps it is refused for what it is fed, with any first node
            sure = self._built(lab, units[1:]).ok
        return units[builds][0] if sure else None

    def _built(self, lab: Lab, units: Sequence[tuple[Node, ...]]) -> Outcome:
        """Return the outcome of one build and run of given nodes: some engines build when they know the shapes."""
        lab.progress(f"{len(units)} nodes, to {units[-1][-1].name}")
        try:
            cut = extract(self.model, [node.name for unit in units for node in unit], specs=self.specs)
            with lab.session(self.spec, cut, sequence=True) as run:
                run({each.name: self.value(each.name) for each in cut.inputs})
        except EngineError as error:
            return Outcome.of(error)
        except (ModelError, KeyError) as error:  # nothing tells a type at the border
            return Outcome(OutcomeKind.RUN_FAILED, str(error))
        return OK


def _words(outcome: Outcome) -> str:
    return _OWN.sub("", outcome.message)
