"""What the target chose freely: errors of single ops and of pieces that a freedom of its hardware accounts for.

Only what is beyond its floor is asked about, alone, on the operands that the engine had: what would the operator give
on an engine that takes this freedom? An error no larger than that is no fault: the floor is widened by what the freedom
costs there, and the freedom is remembered, to be told in words. On hardware that is not known, a freedom counts only if
the engine takes it at least at half of the operators of a kind where it would show: one product of many that is off by
so much is a fault of that one.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import (
    format_limit,
    freedom_shows,
    is_habit,
    is_suspect,
    suspect_floor_of,
    suspect_limit,
    within_limit,
)
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import Hardware
from tensortriage.envelope.distances import Distance, distances
from tensortriage.envelope.evaluations import format_options
from tensortriage.envelope.explanations import Explanation, freedoms_of_target
from tensortriage.envelope.floors import Floors
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model

OpTypes = Callable[[str], frozenset[str]]
"""Returns the operators that make a value out of what was fed."""

MOST_PEERS = 16
"""Ops of the same kinds that are asked about beside the suspects, to see whether a freedom is a habit of the engine."""


def with_choices(
    inv: Investigation,
    exploded: Model,
    feed: Feed,
    floors: Floors,
    errors: Mapping[str, float],
    *,
    op_types: OpTypes,
    what: str,
) -> Floors:
    """Return the floors of an exploded model, widened where the target took a freedom.

    Args:
        inv: The investigation.
        exploded: The model that was run.
        feed: What it was fed with.
        floors: Floors of its values.
        errors: Relative errors of its values on the target.
        op_types: What makes a value.
        what: Said while it takes place.
    """
    suspects = [value for value, error in errors.items() if is_suspect(error, floors.target.get(value))]
    kinds = frozenset().union(*map(op_types, suspects))
    freedoms = freedoms_of_target(inv.question.target, op_types=kinds)
    if not suspects or not freedoms or floors.source != "envelope":
        return floors
    values = [*suspects, *peers_of(suspects, list(errors), op_types)]
    with contextlib.suppress(EngineError, UsageError):
        words = f"what engines are free to choose at {what}"
        found = each_freedom(inv, exploded, feed, values, freedoms, what=words)
        return widened(floors, found, errors, op_types=op_types, suspects=suspects, hardware=inv.hardware)
    return floors


def each_freedom(
    inv: Investigation, model: Model, feed: Feed, values: Sequence[str], freedoms: Sequence[Explanation], *, what: str
) -> dict[Explanation, Mapping[str, Distance]]:
    """Return what each freedom alone makes of values in the target's format, by value.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """
    evaluations = {freedom.name: freedom.evaluation(format_options(inv.precision)) for freedom in freedoms}
    found = distances(inv.lab, model, feed, values, evaluations, what=what)
    return {freedom: found[freedom.name] for freedom in freedoms}


def widened(
    floors: Floors,
    found: Mapping[Explanation, Mapping[str, Distance]],
    errors: Mapping[str, float],
    *,
    op_types: OpTypes,
    suspects: Collection[str],
    hardware: Hardware,
) -> Floors:
    """Return floors at which what a freedom accounts for makes no suspect; the first that does is remembered.

    Args:
        floors: Floors without any freedom.
        found: What each freedom makes of suspects and of their peers, the operators of the same kinds.
        errors: Relative error of each of these values on the target.
        op_types: What makes a value.
        suspects: Values beyond their floor.
        hardware: The target's class.
    """
    target, taken = dict(floors.target), dict(floors.taken)
    plain = {value: suspect_limit(floor) for value, floor in floors.target.items()}
    for freedom, figures in found.items():
        allowed = {
            value: max(format_limit(error_of(figure), figure.count), plain.get(value, 0.0))
            for value, figure in figures.items()
            if freedom.concerns(op_types(value))
        }
        within = [value for value in suspects if value in allowed and within_limit(errors[value], allowed[value])]
        if not hardware.has_habits:
            within = [value for value in within if _is_habit(op_types(value), within, allowed, plain, op_types)]
        for value in within:
            if value not in taken:
                target[value], taken[value] = suspect_floor_of(allowed[value]), freedom
    return dataclasses.replace(floors, target=target, taken=taken)


def _is_habit(
    kind: frozenset[str],
    within: Collection[str],
    allowed: Mapping[str, float],
    plain: Mapping[str, float],
    op_types: OpTypes,
) -> bool:
    """Say whether an engine takes a freedom at enough operators of a kind, of those where it would show."""
    shows = [v for v in allowed if op_types(v) == kind and freedom_shows(allowed[v], plain.get(v, 0.0))]
    return not shows or is_habit(sum(value in within for value in shows), len(shows))


def peers_of(suspects: Sequence[str], values: Sequence[str], op_types: OpTypes) -> list[str]:
    """Return values that ops of the same kinds as the suspects make, evenly spread over the model."""
    known, kinds = {*suspects}, {op_types(value) for value in suspects}
    others = [value for value in values if value not in known and op_types(value) in kinds]
    step = max(1, -(-len(others) // MOST_PEERS))
    return others[::step]


def maker(inv: Investigation) -> OpTypes:
    """Return what names the operator of a value, as a set of one."""
    graph = inv.model.graph

    def op_types(value: str) -> frozenset[str]:
        node = graph.producer(value)
        return frozenset() if node is None else frozenset({node.op_type})

    return op_types
