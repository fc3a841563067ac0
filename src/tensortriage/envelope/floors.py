"""Noise floors: the relative error that a healthy engine must be allowed at every tensor, by fp32 and by its format."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.within import Limit, healthy_limit
from tensortriage.envelope.distances import EXTERNAL, Distance, distances
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import Explanation
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision
from tensortriage.values.store import TensorStore

ENVELOPE, JITTER = "envelope", "input jitter"
"""How floors were found."""


@dataclasses.dataclass(frozen=True, slots=True)
class Floors:
    """Relative noise floors by value name.

    Attributes:
        fp32: Floor of a healthy fp32 engine; it may be `MATCH_FACTOR` times as far off.
        target: Floor of a healthy engine in the target's format; equals ``fp32`` for fp32.
        emulated: Figures of the emulated format, where one was emulated; with their NaN and Inf counts they tell what
            the format cannot hold.
        source: How the fp32 floor was found: ``envelope`` or ``input jitter``.
        reference: Figures of the reference's own values against the centre of the envelope, as far as it was judged.
        taken: Freedoms that the target took, by value; its floor allows for what they cost.
    """

    fp32: Mapping[str, float]
    target: Mapping[str, float]
    emulated: Mapping[str, Distance]
    source: str
    reference: Mapping[str, Distance] = dataclasses.field(default_factory=dict)
    taken: Mapping[str, Explanation] = dataclasses.field(default_factory=dict)

    def limit(self, value: str, count: int, chosen: float | None = None) -> Limit:
        """Return the largest error of a healthy engine at a value of so many elements.

        Args:
            value: Its name.
            count: Its elements.
            chosen: What the freedoms of the target's hardware cost there; None where that is not known.
        """
        predicted = self.target.get(value) if self.emulated else None
        limit = healthy_limit(count, self.fp32.get(value, 0.0), predicted, chosen)
        return limit if self.source == ENVELOPE else dataclasses.replace(limit, basis=Basis.SENSITIVITY)


def envelope_floors(
    lab: Lab,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    precision: Precision,
    kept: Collection[str] = (),
    reference: TensorStore | None = None,
    reference_name: str = "",
    judged: Sequence[str] | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed, from nothing but these two.

    Args:
        lab: Where engines are asked.
        model: The model (whole, or exploded).
        feed: Its inputs.
        values: Values whose floors are wanted, in topological order.
        precision: The target's format.
        kept: Nodes of the model that compute in fp32 whatever the format.
        reference: The reference's values, to be judged by the envelope.
        reference_name: Tells references apart.
        judged: Values at which the reference is judged; None for all.
        seen: Told every value of the centre while it is evaluated.
        what: Said while it takes place, e.g. ``every layer``.

    Raises:
        EngineError: When the model cannot be evaluated, as for an operator without float64 arithmetic.
        UsageError: Likewise.
    """
    healthy = Healthy.of(model, precision, kept=kept)
    found = distances(
        lab,
        model,
        feed,
        values,
        healthy.all,
        external=reference,
        external_name=reference_name,
        external_values=judged,
        seen=seen,
        what=f"floors of {what}",
    )
    figures = by_value({name: found[name] for name in healthy.all})
    fp32 = {v: healthy.fp32_floor(each) for v, each in figures.items() if not healthy.order.keys().isdisjoint(each)}
    target = {value: healthy.floor(each) for value, each in figures.items()}
    return Floors(fp32, target, found.get("format", {}), ENVELOPE, found.get(EXTERNAL, {}))


def cost_of_freedoms(
    lab: Lab,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    freedoms: Sequence[Explanation],
    precision: Precision,
    what: str = "the model with the freedoms taken",
) -> dict[str, float]:
    """Return the relative error that an engine makes at values of a whole model when it takes several freedoms at once.

    Args:
        lab: Where engines are asked.
        model: The whole model.
        feed: Its inputs.
        values: Values to measure, in topological order.
        freedoms: Freedoms, all of which are taken.
        precision: The target's format.
        what: Said while it takes place.

    Returns:
        By value name; inf where an evaluation is not finite, and nothing where a shape depends on the arithmetic.

    Raises:
        EngineError: When the model cannot be evaluated.
    """
    healthy = Healthy.of(model, precision, freedoms)
    figures = by_value(distances(lab, model, feed, values, healthy.with_freedoms, what=what))
    costs = {value: healthy.cost_of_freedoms(each) for value, each in figures.items()}
    return {value: cost for value, cost in costs.items() if cost is not None}


def by_value(found: Mapping[str, Mapping[str, Distance]]) -> dict[str, dict[str, Distance]]:
    """Return distances by value and evaluation, from those by evaluation and value."""
    turned: dict[str, dict[str, Distance]] = {}
    for name, figures in found.items():
        for value, figure in figures.items():
            turned.setdefault(value, {})[name] = figure
    return turned


def jitter(tensors: Mapping[str, np.ndarray], *, seed: int = 0) -> dict[str, np.ndarray]:
    """Return a copy of a feed with every float32 and float64 element moved by -1, 0 or +1 ulp, reproducibly.

    Args:
        tensors: Arrays by name; those of other types are handed on.
        seed: Of the random directions.
    """
    rng = np.random.default_rng(seed)
    moved: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        if array.dtype not in (np.float32, np.float64):
            moved[name] = array
            continue
        direction = rng.integers(-1, 2, array.shape)
        towards = np.where(direction > 0, np.inf, -np.inf).astype(array.dtype)
        with np.errstate(over="ignore"):
            nearest = np.nextafter(array, towards)
        moved[name] = np.where((direction == 0) | np.isinf(nearest), array, nearest).astype(array.dtype)
    return moved
