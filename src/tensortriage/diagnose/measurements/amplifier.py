"""Which op amplifies rounding, on the way to an output? The first behind which healthy engines part.

They part by the noise floors, or where the inputs move by one unit in the last place: what hangs on one rounding that
happened to agree, as a threshold met exactly, no floor shows.
"""

import math
from collections.abc import Sequence

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.floors import fp32_floors
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.synthetic.jitter import jitter
from tensortriage.values.text import error_size, percent

_WHOLE = frozenset({"Ceil", "Floor", "Round", "Sign"})
"""Operators whose results are whole numbers of a floating-point type."""
_THRESHOLDS = frozenset({"SVMClassifier", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"})
"""Operators whose results jump where an operand passes a number."""


def amplifier(inv: Investigation, result: FeedResult, output: str, *, draws: int = 0) -> tuple[Culprit | None, str]:
    """Return the op behind which healthy engines part, on the way to an output, and the end of a sentence about it.

    It is the first op whose floor is half of the output's, or no number as that is, while its operands' are not.

    Args:
        inv: The investigation.
        result: The outputs on a feed.
        output: The output.
        draws: How often the inputs are moved by one unit in the last place, in place of asking for floors; 0 for these.
    """
    graph = inv.model.graph
    before = [value for node in graph.ancestors([output]) for value in node.outputs if value in inv.question.values]
    asked = [value for value in inv.question.values if value in set(before)]
    floors = _moved(inv, result.feed, asked, draws) if draws else fp32_floors(inv.setting(result.feed), asked)
    worst = floors[output] if draws else result.floors.fp32[output]

    def parts(floor: float) -> bool:
        return not floor < worst / 2.0 if math.isfinite(worst) else not math.isfinite(floor)

    for value in before:
        node = graph.producer(value)
        if node is None or value not in floors or not parts(floors[value]):
            continue
        operands = max((floors.get(name, 0.0) for name in node.inputs), default=0.0)
        if parts(operands):
            continue
        if not math.isfinite(floors[value]):
            how = f"'{value}' is NaN or Inf for some of them"
        elif _is_decision(inv, result, value):
            how = f"rounding decides {percent(min(floors[value], 1.0))} of its elements"
        elif node.op_type in _THRESHOLDS:
            how = "a rounding decides on which side of a threshold an operand lies"
        elif node.op_type in _WHOLE:
            smaller, larger = error_size(operands), error_size(floors[value])
            how = f"rounding decides ties: they differ by {smaller} before it and by {larger} behind it"
        else:
            how = f"they differ by {error_size(operands)} before it and by {error_size(floors[value])} behind it"
        reason = f"amplifies rounding: {how}"
        return Culprit(node.name, node.op_type, value, reason=reason), f", since {node.op_type} '{node.name}' {reason}"
    return None, ""


def _moved(inv: Investigation, feed: Feed, values: Sequence[str], draws: int) -> dict[str, float]:
    """Return the largest relative error of values when inputs move by one unit in the last place, in some draws."""
    right, found = inv.golden.of(feed), dict.fromkeys(values, 0.0)
    for seed in range(draws):
        moved = Feed(f"{feed.name} jittered {seed}", jitter(feed.tensors, seed=seed), feed.origin)
        made = inv.lab.values(PLAIN, inv.model, moved, values)
        for name in values:
            if name in right and made[name].shape == right[name].shape:
                found[name] = max(found[name], error_of(measure(right[name], made[name])))
    return found


def _is_decision(inv: Investigation, result: FeedResult, value: str) -> bool:
    spec = inv.golden.specs(result.feed).get(value)
    return spec is not None and spec.dtype is not None and not spec.dtype.is_float
