"""The error limits of ops that are fed with golden operands: alone, or in pieces, all in one exploded model.

An op may err twice as much as its format costs it. Only beyond that are freedoms considered, on the operands that the
engine had: what would the operator give on an engine that takes this freedom? An error no larger than that is no fault,
and the freedom is remembered for the report. On unknown hardware, a freedom counts only if the engine takes it at least
at half of the operators of a kind where it would show: one product of many with such an error is a fault of that one.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import freedom_shows, is_habit
from tensortriage.engines.spec import Hardware
from tensortriage.envelope.distances import Distance, distances
from tensortriage.envelope.evaluations import format_options
from tensortriage.envelope.explanations import Explanation
from tensortriage.envelope.limits import Limit, of_op, of_prediction
from tensortriage.envelope.registry import freedoms_of_target
from tensortriage.envelope.setting import ENVELOPE, Floors, Setting
from tensortriage.errors import EngineError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph

OpTypes = Callable[[str], frozenset[str]]
"""Returns the operators that make a value out of the inputs."""

MOST_PEERS = 16
"""Ops of the same kinds that are tested together with the suspects, to see whether a freedom is a habit of the
engine."""


@frozen_dataclass
class OpLimits:
    """Allowed errors of ops.

    Attributes:
        limits: By value.
        chosen: Freedoms without which a value would be beyond its limit, by value.
    """

    limits: Mapping[str, Limit]
    chosen: Mapping[str, Explanation] = dataclasses.field(default_factory=dict)

    @classmethod
    def plain(cls, floors: Floors) -> Self:
        """Return those of ops that choose nothing."""
        return cls({value: Limit(of_op(floor), Basis.FORMAT) for value, floor in floors.target.items()})

    def over(self, value: str, error: float | None) -> float | None:
        """Return an error over its limit; None where either is not known."""
        limit = self.limits.get(value)
        if error is None or limit is None:
            return None
        if error == 0.0 or math.isinf(limit.error):
            return 0.0 if error == 0.0 else 1.0
        return error / limit.error if limit.error > 0.0 else math.inf


def op_limits(
    setting: Setting, floors: Floors, errors: Mapping[str, float], *, op_types: OpTypes, what: str
) -> OpLimits:
    """Return the limits of ops, with the freedoms that their engine chose.

    Args:
        setting: The exploded model, its feed, and the target.
        floors: Floors of its values.
        errors: Relative errors of its values on the target.
        op_types: Returns the operators that make a value.
        what: Progress line.
    """
    plain = OpLimits.plain(floors)
    suspects = [value for value, error in errors.items() if (plain.over(value, error) or 0.0) > 1.0]
    freedoms = freedoms_of_target(setting.target, op_types=frozenset().union(*map(op_types, suspects)))
    if not suspects or not freedoms or floors.source != ENVELOPE:
        return plain
    values = [*suspects, *peers_of(suspects, list(errors), op_types)]
    evaluations = {freedom.name: freedom.evaluation(format_options(setting.precision)) for freedom in freedoms}
    with contextlib.suppress(EngineError, UsageError):
        words = f"the freedoms of engines at {what}"
        found = distances(setting, values, evaluations, what=words)
        costs = {freedom: found[freedom.name] for freedom in freedoms}
        return with_freedoms(
            plain.limits, costs, errors, op_types=op_types, suspects=suspects, hardware=setting.hardware
        )
    return plain


def with_freedoms(
    plain: Mapping[str, Limit],
    costs: Mapping[Explanation, Mapping[str, Distance]],
    errors: Mapping[str, float],
    *,
    op_types: OpTypes,
    suspects: Collection[str],
    hardware: Hardware,
) -> OpLimits:
    """Return limits under which an op explained by a freedom is no suspect; the first such freedom is remembered.

    Args:
        plain: Limits without any freedom.
        costs: The effect of each freedom on suspects and on their peers, the operators of the same kinds.
        errors: Relative error of each of these values on the target.
        op_types: Returns the operators that make a value.
        suspects: Values beyond their plain limit.
        hardware: The target's class.
    """
    limits, chosen = dict(plain), dict[str, Explanation]()
    for freedom, figures in costs.items():
        allowed = {
            value: max(of_prediction(error_of(figure), figure), plain[value].error)
            for value, figure in figures.items()
            if value in plain and freedom.concerns(op_types(value))
        }
        within = [value for value in suspects if value in allowed and errors[value] <= allowed[value]]
        if not hardware.has_habits:
            within = [value for value in within if _is_habit(op_types(value), within, allowed, plain, op_types)]
        for value in within:
            if value not in chosen:
                limits[value], chosen[value] = Limit(allowed[value], Basis.HARDWARE, (freedom.name,)), freedom
    return OpLimits(limits, chosen)


def _is_habit(
    kind: frozenset[str],
    within: Collection[str],
    allowed: Mapping[str, float],
    plain: Mapping[str, Limit],
    op_types: OpTypes,
) -> bool:
    """Return whether an engine takes a freedom at enough operators of a kind, of those where it would show."""
    shows = [v for v in allowed if op_types(v) == kind and freedom_shows(allowed[v], plain[v].error)]
    return not shows or is_habit(sum(value in within for value in shows), len(shows))


def peers_of(suspects: Sequence[str], values: Sequence[str], op_types: OpTypes) -> list[str]:
    """Return values that ops of the same kinds as the suspects make, evenly spread over the model."""
    known, kinds = {*suspects}, {op_types(value) for value in suspects}
    others = [value for value in values if value not in known and op_types(value) in kinds]
    step = max(1, -(-len(others) // MOST_PEERS))
    return others[::step]


def makers(graph: Graph) -> OpTypes:
    """Return a function from a value to its operator in the whole model, as a set of one."""

    def op_types(value: str) -> frozenset[str]:
        node = graph.producer(value)
        return frozenset() if node is None else frozenset({node.op_type})

    return op_types
