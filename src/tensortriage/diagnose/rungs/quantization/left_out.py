"""Does the target leave quantizers out? Then it treats pairs of QuantizeLinear and DequantizeLinear as nothing.

Within the range of a pair that costs no more than its rounding, and nobody notices. A value beyond the range is cut off
by the pair and passes where it is left out. So where numbers lie beyond, the model is run on the reference without its
pairs, and again with only those behind its inputs (an engine that gets a part of a model may receive its inputs
quantized); the variant that agrees with the target is the one that the target ran.
"""

from collections.abc import Iterator

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import explained_by_format
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.quantization.quantizer_fit import integer_range
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.quantization.qdq import Quantizer, bypass, quantizers
from tensortriage.values.text import percent


@frozen_dataclass
class LeftOut:
    """Pairs that the target leaves out.

    Attributes:
        pairs: Names of their QuantizeLinear nodes.
        of: How many pairs of activations the model has.
        value: The value that lies farthest beyond the range of its pair, by share of elements.
        share: Share of its elements beyond that range.
        error: Relative error of the worst output against the model without these pairs.
    """

    pairs: tuple[str, ...]
    of: int
    value: str
    share: float
    error: float

    @property
    def sentence(self) -> str:
        """The target's behaviour, as a clause."""
        return (
            f"it leaves out {len(self.pairs)} of {self.of} pairs of QuantizeLinear and DequantizeLinear, which cut "
            f"off values beyond their range ({percent(self.share)} of '{self.value}')"
        )


def pairs_left_out(inv: Investigation, feed: Feed, result: FeedResult) -> LeftOut | None:
    """Return the pairs whose absence explains the failing outputs on a feed; None when there are none.

    Args:
        inv: The investigation.
        feed: A feed on which the target fails.
        result: How they fail; its floors hold the predicted cost of the target's format.
    """
    pairs = [pair for pair in quantizers(inv.model.graph) if not pair.of_weight and not pair.dtype.is_float]
    beyond = dict(_shares(inv, feed, pairs))
    if not any(beyond.values()):
        return None
    inputs = {spec.name for spec in inv.model.inputs}
    inner = [pair for pair in pairs if pair.value not in inputs]
    for dropped in (pairs, inner) if 0 < len(inner) < len(pairs) else (pairs,):
        try:
            error = _error_without(inv, feed, result, dropped)
        except EngineError:
            continue
        if error is not None:
            value = max((pair.value for pair in dropped), key=lambda name: beyond.get(name, 0.0))
            named = tuple(pair.quantize for pair in dropped)
            return LeftOut(named, len(pairs), value, beyond.get(value, 0.0), error)
    return None


def _shares(inv: Investigation, feed: Feed, pairs: list[Quantizer]) -> Iterator[tuple[str, float]]:
    """Yield each quantized value with the share of its elements that its pair cuts off."""
    golden, graph = inv.golden.of(feed), inv.model.graph
    for pair in pairs:
        if pair.value not in feed.tensors and pair.value not in golden:
            continue
        numbers = np.asarray(feed.tensors[pair.value] if pair.value in feed.tensors else golden[pair.value], np.float64)
        shape = [1] * numbers.ndim
        scale = np.asarray(graph.weight(pair.scale), np.float64)
        zero = np.asarray(graph.weight(pair.zero_point) if pair.zero_point else 0, np.float64)
        if scale.size > 1:
            shape[pair.axis] = -1
        low, high = integer_range(pair.dtype)
        whole = numbers / scale.reshape(shape if scale.size > 1 else ())
        whole = np.rint(whole) + zero.reshape(shape if zero.size > 1 else ())
        yield pair.value, float(np.mean((whole < low) | (whole > high))) if whole.size else 0.0


def _error_without(inv: Investigation, feed: Feed, result: FeedResult, dropped: list[Quantizer]) -> float | None:
    """Return the worst error of the target against the model without some pairs; None when that is no better."""
    found = inv.deployed(feed)
    plain = bypass(inv.model, {}, only={pair.dequantize for pair in dropped})
    expected = inv.lab.outputs(inv.question.reference, plain, feed)
    errors = []
    for name in result.failing:
        if expected[name].shape != found[name].shape:
            return None
        figure = measure(np.asarray(expected[name]), np.asarray(found[name]))
        error = error_of(figure)
        if not explained_by_format(figure, error, result.floors.target.get(name, 0.0)):
            return None
        errors.append(error)
    return max(errors, default=None)
