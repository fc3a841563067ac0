"""What the target chose freely: errors of single ops and of pieces that a freedom of its hardware accounts for.

The floors of what is beyond them are widened by what the freedom costs there, and the freedom is remembered, to be told
in words. Then whoever looks for faults finds only what no healthy engine of that class could have made.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence

from tensortriage.compare.judgement.within import is_suspect, suspect_limit
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.allowances import allowances, choice_errors, widened
from tensortriage.envelope.floors import Floors
from tensortriage.envelope.freedoms import freedoms_of
from tensortriage.envelope.hardware import Hardware
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model

MOST_PEERS = 16
"""Ops of the same kinds that are asked about beside the suspects, to see whether a freedom is a habit of the engine."""


def with_choices(
    inv: Investigation,
    exploded: Model,
    feed: Feed,
    floors: Floors,
    errors: Mapping[str, float],
    *,
    op_types: Callable[[str], frozenset[str]],
    what: str,
) -> Floors:
    """Return the floors of an exploded model, widened where the target took a freedom.

    Args:
        inv: The investigation.
        exploded: The model that was run.
        feed: What it was fed with.
        floors: Floors of its values.
        errors: Relative errors of its values on the target.
        op_types: Operators that make a value out of what was fed.
        what: Said while it takes place.
    """
    freedoms = freedoms_of(Hardware.of(inv.question.target), inv.precision)
    suspects = [value for value, error in errors.items() if is_suspect(error, floors.target.get(value))]
    if not suspects or not freedoms or floors.source != "envelope":
        return floors
    values = [*suspects, *peers_of(suspects, list(errors), op_types)]
    with contextlib.suppress(EngineError, UsageError):
        found = choice_errors(
            inv,
            exploded,
            feed,
            values,
            freedoms=[freedom for freedom in freedoms if any(freedom.concerns(op_types(value)) for value in suspects)],
            precision=inv.precision,
            what=f"what engines are free to choose at {what}",
        )
        granted = allowances(
            found,
            errors,
            {value: suspect_limit(floor) for value, floor in floors.target.items()},
            op_types=op_types,
            suspects=suspects,
            hardware=Hardware.of(inv.question.target),
        )
        return widened(floors, granted)
    return floors


def peers_of(suspects: Sequence[str], values: Sequence[str], op_types: Callable[[str], frozenset[str]]) -> list[str]:
    """Return values that ops of the same kinds as the suspects make, evenly spread over the model."""
    known, kinds = {*suspects}, {op_types(value) for value in suspects}
    others = [value for value in values if value not in known and op_types(value) in kinds]
    step = max(1, -(-len(others) // MOST_PEERS))
    return others[::step]


def maker(inv: Investigation) -> Callable[[str], frozenset[str]]:
    """Return what names the operator of a value, as a set of one."""
    graph = inv.model.graph

    def op_types(value: str) -> frozenset[str]:
        node = graph.producer(value)
        return frozenset() if node is None else frozenset({node.op_type})

    return op_types
