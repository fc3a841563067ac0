"""Which nodes look guilty before anything was cut? Those whose local error stands out from rounding.

One build and one run of the exploded model on the target tell the local error of every node; for a target in a narrow
format one more run tells what rounding alone would do to each.
"""

import math
from collections.abc import Mapping

from tensortriage.compare.judgement.relative_error import error_of, least_floor, ratio_of
from tensortriage.compare.judgement.thresholds import FP32_SUSPECT_ROUNDINGS
from tensortriage.compare.judgement.within import stands_out
from tensortriage.diagnose.measurements.floors import emulate
from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.measurements.local_errors.local import parts_of
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.errors import EngineError, TriageError
from tensortriage.inputs.feed import Feed
from tensortriage.values.dtype import Precision


def suspicions(inv: Investigation, feed: Feed) -> Mapping[str, float]:
    """Return local error over allowance for the nodes in which it exceeds it.

    Returns:
        By node name; empty when the target cannot run the exploded model.
    """
    operands = golden_operands(inv, feed)
    golden, specs, what = operands.golden, operands.specs, "each node alone"
    found: dict[str, float] = {}
    for nodes in parts_of(inv, golden):
        try:
            ops = operands.apart([[name] for name in nodes])
            answer = inv.figures(inv.question.target, ops.model, ops.feed, ops.values, golden=golden, what=what).figures
            rounded = (
                emulate(inv, ops.model, ops.feed, ops.values, golden=golden, specs=specs, what=what)
                if inv.precision in ROUNDED
                else {}
            )
        except TriageError as error:
            if not isinstance(error, EngineError):
                raise
            return {}
        least = least_floor(inv.precision) * (FP32_SUSPECT_ROUNDINGS if inv.precision is Precision.FP32 else 1.0)
        for value in ops.values:
            producer = inv.model.graph.producer(value)
            if producer is None:
                continue
            if value in answer.misshapen:
                found[producer.name] = math.inf
                continue
            floor = max(least, error_of(rounded[value]) if value in rounded else 0.0)
            ratio = ratio_of(error_of(answer.metrics[value]), floor) or 0.0
            if stands_out(ratio):
                found[producer.name] = max(found.get(producer.name, 0.0), ratio)
    return found
