"""The healthy evaluations of a model under a set of explanations, and the limits that follow for a value.

The limit of fp32 is measured by evaluations whose every operator is ten times as wrong as a healthy kernel's result.
The effect of ten times the usual noise at a tensor is an engine's limit there. Where noise grows smoothly that is ten
times the floor; where it only flips decisions (a rounding to int8, a comparison) it is the cost of flips, and no more.

For a narrower format the prediction is the error that remains when every operator is exact and its result is rounded to
the format; so for the engines' other choices. Models that cut values to whole numbers (positions to the buckets of
relative attention) are also evaluated with results passed on unrounded where engines fuse: a value on the edge falls to
one side with one rounding more, and to the other with one less.
"""

import functools
import math
import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Self

from tensortriage.compare.judgement.relative_error import ErrorFigures, error_of, least_floor
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.explanations import ROUNDED, Explanation, evaluation
from tensortriage.envelope.limits import floor_of_amplified
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.model.quantization.whole_numbers import cuts_to_integers
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import Precision

Figures = Mapping[str, ErrorFigures]
"""How far evaluations of a value lie from the correctly rounded one, by the name of the evaluation."""


@frozen_dataclass
class Healthy:
    """Healthy evaluations of a model, by name.

    Attributes:
        order: In fp32, with sums in other orders and narrow types as engines compute them.
        format: In the target's format; none for fp32 and wider.
        taken: Those in it with freedoms: the freedoms that engines take together, and the additive ones.
        precision: The target's format.
    """

    order: Mapping[str, EngineSpec]
    format: Mapping[str, EngineSpec]
    taken: Sequence[Mapping[str, EngineSpec]]
    precision: Precision

    @classmethod
    def of(
        cls,
        model: Model,
        precision: Precision,
        freedoms: Sequence[Explanation] = (),
        *,
        orders: Sequence[Explanation] = (),
        kept: Collection[str] = (),
    ) -> Self:
        """Return the healthy evaluations of a model.

        Args:
            model: The model (whole, or exploded).
            precision: The target's format.
            freedoms: All other freedoms that engines have.
            orders: Differences between healthy fp32 evaluations of it; none where no fp32 floor is needed.
            kept: Nodes of the model that compute in fp32 whatever the format.
        """
        order = {each.name: each.evaluation() for each in orders}
        base, emulated = format_options(precision), emulation(precision, kept)
        narrow = {"format": emulated} if emulated else with_fused_variant(model, "format", base) if base else {}
        groups = [[each.options for each in freedoms if each.additive is apart] for apart in (False, True)]
        taken = [
            with_fused_variant(model, f"taken {number}", functools.reduce(operator.or_, group, base))
            for number, group in enumerate(groups)
            if group
        ]
        return cls(order, narrow, taken, precision)

    @classmethod
    def of_types(cls, typed: Model, freedoms: Sequence[Explanation]) -> Self:
        """Return those of a model whose types set the narrow values: sums stored in float32 are kept in float32."""
        options = functools.reduce(operator.or_, (each.options for each in freedoms), {"accumulated": "narrow"})
        return cls({}, {}, [with_fused_variant(typed, "taken", options)], Precision.FP32)

    @property
    def with_freedoms(self) -> dict[str, EngineSpec]:
        """The evaluations that `cost_of_freedoms` is found by."""
        alone = {"format": self.format["format"]} if len(self.taken) > 1 and self.format else {}
        return functools.reduce(operator.or_, map(dict, self.taken), alone)

    @property
    def results(self) -> Precision:
        """The format that results are rounded to; TF32 and formats of blocks shorten operands alone."""
        return self.precision if self.precision in ROUNDED else Precision.FP32

    @property
    def all(self) -> dict[str, EngineSpec]:
        """Every evaluation."""
        return {**self.order, **self.format, **self.with_freedoms}

    def fp32_floor(self, figures: Figures) -> float:
        """Return the floor of a value in fp32: that of the evaluation that is furthest off."""
        return max((floor_of_amplified(figures[name]) for name in self.order if name in figures), default=0.0)

    def floor(self, figures: Figures) -> float:
        """Return the floor of a value in the target's format: the predicted cost of rounding to it."""
        rounded = [figures[name] for name in self.format if name in figures]
        least = least_floor(self.results)
        each = (max(error_of(figure), 0.0 if figure.exact else least) for figure in rounded)
        return max(self.fp32_floor(figures), *each, 0.0)

    def cost_of_freedoms(self, figures: Figures) -> float | None:
        """Return the error that an engine makes at a value which takes the freedoms; inf where one is not finite.

        Additive freedoms are taken by other ops than the rest: their contributions to the format's own error are added
        in quadrature. None where the value has another shape then.
        """
        if not self.taken or not self.with_freedoms.keys() <= figures.keys():
            return None
        alone = error_of(figures["format"]) if len(self.taken) > 1 and self.format else 0.0
        errors = [max(error_of(figures[name]) for name in group) for group in self.taken]
        if not all(map(math.isfinite, (alone, *errors))):
            return math.inf
        return math.hypot(alone, *(math.sqrt(max(error**2 - alone**2, 0.0)) for error in errors))


def format_options(precision: Precision) -> Mapping[str, str]:
    """Return the options under which a model is evaluated in a format; none for fp32 and wider, and for int8."""
    if precision is Precision.TF32 or precision in BLOCK_FORMATS:
        return {"operands": precision.value}
    return {"format": precision.value} if precision in ROUNDED and precision is not Precision.INT8 else {}


def emulation(precision: Precision, kept: Collection[str] = ()) -> EngineSpec | None:
    """Return the engine that emulates a format where options do not: int8, and some nodes kept in fp32."""
    if precision not in ROUNDED or (precision is not Precision.INT8 and not kept):
        return None
    return EngineSpec("emulate", {"precision": precision.value, **({"kept": "+".join(sorted(kept))} if kept else {})})


def with_fused_variant(model: Model, name: str, options: Mapping[str, str]) -> dict[str, EngineSpec]:
    """Return the evaluation under an arithmetic by its name, and the one that fuses where that moves whole numbers."""
    first = {name: evaluation(options)}
    return {**first, f"{name} fused": evaluation({**options, "fused": "true"})} if cuts_to_integers(model) else first
