"""Which freedoms an engine took: errors beyond the floor that an accumulator or an approximation accounts for.

Only what is beyond its floor is asked about, alone, on the operands that the engine had: what would the operator give
on an engine that takes this freedom? An error no larger than that is no fault. On hardware that is not known, a freedom
counts only if the engine takes it at least at half of the operators of a kind where it would show: one product of many
that is off by so much is a fault of that one.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import format_limit, freedom_shows, is_habit, suspect_floor_of, within_limit
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.floors import Floors, either_side, format_member
from tensortriage.envelope.freedoms import FP16_RESULTS_CUT, Freedom
from tensortriage.envelope.hardware import Hardware
from tensortriage.envelope.member_errors import MemberError
from tensortriage.envelope.members import member, spread
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision


@dataclasses.dataclass(frozen=True, slots=True)
class Allowance:
    """What a freedom allows at one value.

    Attributes:
        freedom: The freedom that accounts for the error.
        error: Relative error that an engine which takes it may make there, few elements allowed for.
    """

    freedom: Freedom
    error: float


def choice_errors(
    lab: Lab,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    freedoms: Sequence[Freedom],
    precision: Precision,
    what: str,
) -> dict[Freedom, Mapping[str, MemberError]]:
    """Return what each freedom makes of values in a format, against the model evaluated as its types say.

    Args:
        lab: Where engines are asked.
        model: The model (whole, or exploded).
        feed: Its inputs.
        values: Values to measure, in topological order.
        freedoms: Freedoms, each taken by itself.
        precision: The target's format, in which they are taken.
        what: Said while it takes place.

    Returns:
        Figures by value name, for each freedom.

    Raises:
        EngineError: When the model cannot be evaluated.
    """
    base = format_member(precision)
    options = {} if base is None or base.name != "reference" else base.options
    members = {freedom.name: member({**options, **freedom.options}) for freedom in freedoms}
    found = spread(lab, model, feed, values, members, what=what)
    return {freedom: found[freedom.name] for freedom in freedoms}


def allowances(
    found: Mapping[Freedom, Mapping[str, MemberError]],
    errors: Mapping[str, float],
    floors: Mapping[str, float],
    *,
    op_types: Callable[[str], frozenset[str]],
    suspects: Collection[str],
    hardware: Hardware,
) -> dict[str, Allowance]:
    """Return the freedom that accounts for the error of each suspect, where one does.

    Args:
        found: What each freedom makes of suspects and of their peers, the operators of the same kinds.
        errors: Relative error of each of these values on the target.
        floors: Their floors without any freedom.
        op_types: Operators that make a value out of what was fed.
        suspects: Values beyond their floor.
        hardware: The target's class.
    """
    granted: dict[str, Allowance] = {}
    for freedom, figures in found.items():
        allowed = {
            value: max(format_limit(error_of(figure), figure.count), floors.get(value, 0.0))
            for value, figure in figures.items()
            if freedom.concerns(op_types(value))
        }
        within = {value for value in suspects if value in allowed and within_limit(errors[value], allowed[value])}
        if hardware is Hardware.ANY:
            within = {value for value in within if _is_habit(op_types(value), within, allowed, floors, op_types)}
        for value in within:
            if value not in granted:
                granted[value] = Allowance(freedom, allowed[value])
    return granted


def _is_habit(
    kind: frozenset[str],
    within: Collection[str],
    allowed: Mapping[str, float],
    floors: Mapping[str, float],
    op_types: Callable[[str], frozenset[str]],
) -> bool:
    """Say whether an engine takes a freedom at enough operators of a kind, of those where it would show."""
    shows = [v for v in allowed if op_types(v) == kind and freedom_shows(allowed[v], floors.get(v, 0.0))]
    taken = sum(value in within for value in shows)
    return not shows or is_habit(taken, len(shows))


def widened(floors: Floors, granted: Mapping[str, Allowance]) -> Floors:
    """Return floors at which what the freedoms allow makes no suspect."""
    target = dict(floors.target)
    for value, allowance in granted.items():
        target[value] = max(target.get(value, 0.0), suspect_floor_of(allowance.error))
    taken = {**floors.taken, **{value: allowance.freedom for value, allowance in granted.items()}}
    return dataclasses.replace(floors, target=target, taken=taken)


def whole_model(
    lab: Lab,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    freedoms: Sequence[Freedom],
    precision: Precision,
) -> dict[str, float]:
    """Return the relative error that an engine makes at values of a whole model when it takes several freedoms at once.

    Sums kept in fp16 are fp16 numbers, of which nothing is left to cut off: engines that do both do so in different
    ops. Such freedoms are evaluated apart, and what they add to the format's own error is added up in quadrature.

    Args:
        lab: Where engines are asked.
        model: The whole model.
        feed: Its inputs.
        values: Values to measure, in topological order.
        freedoms: Freedoms, all of which are taken.
        precision: The target's format.

    Returns:
        Relative RMS error by value name; inf where an evaluation is not finite.

    Raises:
        EngineError: When the model cannot be evaluated.
    """
    base = format_member(precision)
    options = dict({} if base is None or base.name != "reference" else base.options)
    apart = [freedom for freedom in freedoms if freedom is FP16_RESULTS_CUT]
    together = [freedom for freedom in freedoms if freedom is not FP16_RESULTS_CUT]
    groups = [group for group in (together, apart) if group]
    members: dict[str, EngineSpec] = {}
    for number, group in enumerate(groups):
        taken = dict(options)
        for freedom in group:
            taken |= freedom.options
        members |= either_side(model, f"taken {number}", taken)
    members |= {"alone": member(options)} if len(groups) > 1 else {}
    found = spread(lab, model, feed, values, members, what="the model with the freedoms taken")
    predicted = {}
    known = [set(figures) for figures in found.values()]  # not where a member's shape depends on its data
    for value in set.intersection(*known) if known else ():
        errors = [
            max(error_of(found[name][value]) for name in members if name.startswith(f"taken {number}"))
            for number in range(len(groups))
        ]
        alone = error_of(found["alone"][value]) if len(groups) > 1 else 0.0
        added = (math.sqrt(max(error**2 - alone**2, 0.0)) for error in errors)
        predicted[value] = math.hypot(alone, *added) if all(map(math.isfinite, (alone, *errors))) else math.inf
    return predicted
