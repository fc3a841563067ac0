"""The subject of judgement (a model on a feed, as a target computes it) and its measured floors."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.within import is_lost
from tensortriage.engines.registry import ResolvedEngine, resolve
from tensortriage.engines.spec import PLAIN, EngineSpec, Hardware
from tensortriage.envelope import limits
from tensortriage.envelope.distances import Distance, EvaluatedModel, StoredValues
from tensortriage.envelope.limits import Limit
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.inspect.output_parts import OutputPart, output_parts, with_parts
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting(EvaluatedModel):
    """A model on a feed, as a target computes it, without the target's results.

    Attributes:
        target: The engine with the number format and the class of hardware.
        reference: The engine assumed to be right.
        golden: Returns the reference's value of every tensor of the model.
        golden_outputs: Returns those of its outputs alone.
        specs: Returns dtype and shape of every value on the feed.
        kept: Nodes that compute in fp32 on the target, whatever its format; of others than the model's no matter.
        trusts_float64: Whether the model may be evaluated in float64; not where other engines contradict that.
    """

    target: EngineSpec
    reference: EngineSpec = PLAIN
    golden: Callable[[], TensorStore]
    golden_outputs: Callable[[], TensorStore]
    specs: Callable[[], Mapping[str, ValueSpec]]
    kept: tuple[str, ...] = ()
    trusts_float64: bool = True

    @cached_property
    def engine(self) -> ResolvedEngine:
        """The engine that the target's spec names."""
        return resolve(self.target)

    @property
    def precision(self) -> Precision:
        """The number format that the target computes in."""
        return self.engine.precision

    @property
    def hardware(self) -> Hardware:
        """The class of hardware that it computes on."""
        return self.engine.hardware

    @cached_property
    def kept_here(self) -> tuple[str, ...]:
        """Nodes of this model that compute in fp32."""
        return tuple(name for name in self.kept if name in self.model.graph)

    @cached_property
    def op_types(self) -> frozenset[str]:
        """The operators that the model has."""
        return frozenset(node.op_type for node in self.model.graph.nodes)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Every value of the model that can be marked, in topological order."""
        return markable(self.model)

    def of_reference(self, values: TensorStore, names: Sequence[str]) -> StoredValues:
        """Return values of the reference that are to be judged."""
        return StoredValues(str(self.reference), values, names)

    @property
    def outputs(self) -> list[str]:
        """The outputs of the model that have golden values."""
        golden = self.golden_outputs()
        return [spec.name for spec in self.model.outputs if spec.name in golden]

    @cached_property
    def parts(self) -> tuple[OutputPart, ...]:
        """The parts that outputs are composed of, each judged as if it were one."""
        return output_parts(self.model, self.feed.tensors)

    @cached_property
    def right(self) -> Mapping[str, np.ndarray]:
        """The golden values of outputs and of their parts."""
        golden = self.golden_outputs()
        return with_parts({name: np.asarray(golden[name]) for name in self.outputs}, self.parts)


ENVELOPE, JITTER = "envelope", "input jitter"
"""How floors were found."""


def of_whole_numbers(setting: Setting, name: str) -> bool:
    """Return whether a value is made of whole numbers alone, so that no format and no order of sums changes it."""
    graph, specs = setting.model.graph, setting.specs()
    made = graph.ancestors([name])
    if any(node.op_type in ("If", "Loop", "Scan") for node in made):  # which may hold others
        return False
    values = {name, *(value for node in made for value in node.uses)}
    weights = values & graph.constants.keys()
    kinds = [specs[value].dtype if value in specs else None for value in values - weights]
    return all(graph.weight(value).dtype.kind in "iub" for value in weights) and all(
        kind is not None and not kind.is_float for kind in kinds
    )


@frozen_dataclass
class Floors:
    """Relative noise floors by value name.

    Attributes:
        fp32: Floor of a healthy fp32 engine; it may be `MATCH_FACTOR` times as far off.
        target: Floor of a healthy engine in the target's format; equals ``fp32`` for fp32.
        emulated: Figures of the emulated format, where one was emulated; their NaN and Inf counts show values beyond
            the format.
        source: How the fp32 floor was found: ``envelope`` or ``input jitter``.
        reference: Figures of the reference's own values against the centre of the envelope, as far as it was judged.
        signal: Root mean square of the centre, as far as it was evaluated.
    """

    fp32: Mapping[str, float]
    target: Mapping[str, float]
    emulated: Mapping[str, Distance]
    source: str
    reference: Mapping[str, Distance] = dataclasses.field(default_factory=dict)
    signal: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def in_fp32(self, value: str) -> Limit:
        """Return the largest error of a healthy fp32 engine at a value."""
        basis = Basis.FLOOR if self.source == ENVELOPE else Basis.SENSITIVITY
        return Limit(limits.of_floor(self.fp32.get(value, 0.0)), basis, (limits.ORDERS,), self._drowning(value))

    def _drowning(self, value: str) -> float:
        """Return how far off, in absolute terms, a value may be on which healthy engines lose the signal; 0 on others.

        A reference that rounds it all to 0, as fp32 Sigmoids do, is no measure of an error.
        """
        floor = self.fp32.get(value, 0.0)
        return limits.of_floor(floor) * self.signal.get(value, 0.0) if is_lost(floor) and math.isfinite(floor) else 0.0

    def in_other_places(self, value: str) -> float:
        """Return the largest error of a value in another place; 0 where its floor is NaN or Inf, which is no limit."""
        floor = max(self.fp32.get(value, 0.0), self.target.get(value, 0.0))
        return limits.of_floor(floor) if math.isfinite(floor) else 0.0

    def limit(self, value: str, count: int, chosen: float | None = None, freedoms: tuple[str, ...] = ()) -> Limit:
        """Return the largest error of a healthy engine at a value of so many elements.

        Args:
            value: Its name.
            count: Its elements.
            chosen: The cost there of the freedoms of the target's hardware; None where it is unknown.
            freedoms: Names of these.
        """
        predicted = self.target.get(value) if self.emulated else None
        limit = limits.healthy(count, self.fp32.get(value, 0.0), predicted, chosen, freedoms=freedoms)
        limit = dataclasses.replace(limit, noise=self._drowning(value))
        return limit if self.source == ENVELOPE else dataclasses.replace(limit, basis=Basis.SENSITIVITY)
