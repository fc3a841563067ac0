"""A NaN of the reference itself: the op that makes it, the rule, and whether float64 makes it too."""

import numpy as np

from tensortriage.compare.nonfinite.arithmetic_rules import rule_of
from tensortriage.compare.reference_checks import has_nan
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.errors import TriageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Node
from tensortriage.runs.lab import FLOAT64


def nan_of_reference(inv: Investigation, feed: Feed, output: str) -> tuple[Culprit | None, str]:
    """Return the op in which an output's NaN originates in the reference's own run, and a clause about it.

    Args:
        inv: The investigation.
        feed: The feed on which the output holds NaN.
        output: Name of the output.

    Returns:
        None and an empty text when no op can be named.
    """
    golden, graph = inv.golden.of(feed), inv.model.graph
    pending, seen = [output], {output}
    origin: Node | None = None
    while pending:
        node = graph.producer(pending.pop())
        if node is None:
            continue
        bad = [name for name in node.uses if name in golden and has_nan(np.asarray(golden[name]))]
        if not bad:
            origin = node if origin is None or node.index < origin.index else origin
        pending += [name for name in bad if name not in seen]
        seen.update(bad)
    if origin is None:
        return None, ""
    value = next(name for name in origin.outputs if name in seen)
    result = np.asarray(golden[value])
    known = {name: graph.weight(name) for name in origin.inputs if name in graph.constants}
    known |= {name: np.asarray(golden[name]) for name in origin.inputs if name in golden}
    arrays = [known.get(name, feed.tensors.get(name)) for name in origin.inputs]
    index = tuple(int(i) for i in np.argwhere(np.isnan(result.astype(np.float64)))[0])
    rule = rule_of(origin, arrays, result, index)
    reason = f"{rule.sentence}{in_float64(inv, feed, value)}"
    culprit = Culprit(origin.name, origin.op_type, value, reason=reason)
    return culprit, f", from {origin.op_type} '{origin.name}': {reason}"


def in_float64(inv: Investigation, feed: Feed, value: str) -> str:
    """Return whether float64 makes a NaN of the same feed too, in words; empty when it cannot be evaluated."""
    try:
        specs = inv.golden.specs(feed)
        array = inv.lab.values(FLOAT64, inv.model, feed, [value], specs=specs)[value]
    except TriageError:
        return ""
    return "; so it is in float64" if has_nan(array) else "; in float64 it is a number"
