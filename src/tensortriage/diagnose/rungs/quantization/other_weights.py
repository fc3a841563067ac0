"""Are the quantized weights those of the reference's model? Asked when all quantizers fit.

Rounding moves a number by half a step at most; only cutting off moves it further. So where half of the numbers of a row
or column are more than a step away from the original's, the integers were made of other numbers. Without any quantizer
these weights alone must then make most of the difference between the two models: tools that quantize may move weights
together, which leaves the model equivalent, or compensate for the errors of others. Where all numbers of a row are
another row's, or a multiple of their own, no such tool made them, and it is enough that they move the outputs by more
than their rounding does: weights that were rescaled together do not.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.within import beyond_a_step, is_decisive
from tensortriage.compare.quantization.weight_moves import WeightMove, moved, scattered, weight_moves
from tensortriage.diagnose.rungs.quantization.clipped_biases import at_the_ends
from tensortriage.diagnose.rungs.quantization.model_errors import Quantization
from tensortriage.diagnose.state.confidence import LEAST_BLAMED, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.envelope.limits import of_rounded_rows
from tensortriage.model.ir.graph import Graph
from tensortriage.model.quantization.qdq import Quantizer, dequantized, quantizers, steps
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.text import error_size, percent

QUESTION = "do the quantized weights match the original's?"
AS_ORIGINAL = "yes: all are within a step of them"


def of_other_weights(inv: Investigation, small: Quantization, *, same: bool | None = None) -> Conclusion | None:
    """Return the verdict that weights are others than the original's, rounded; None when they are its.

    Args:
        inv: The investigation, of the original model.
        small: The quantized model.
        same: Whether the model stands for the original, None where that is not known. If so, only rows that were put
            elsewhere, or rescaled, are others: rounding that makes up for its own error leaves weights more than a step
            away. If not, single numbers may be.

    Raises:
        EngineError: When the reference cannot run a model.
    """
    matched, weights, before = small.matched, small.weights, small.errors
    graph = matched.paired.graph
    away = {pair.result: share for pair in quantizers(graph) if (share := share_beyond(graph, pair, weights)) > 0.0}
    if not away:
        if same is False:
            return _of_other_numbers(inv, small)
        inv.record.answered(QUESTION, AS_ORIGINAL)
        return None
    own = small.errors_of(inv, {name: array for name, array in weights.items() if name not in away})
    output, explained = small.most_explained(own)
    moves = {name: found for name in away if (found := moves_of(graph, name, weights))}
    decisive = is_decisive(explained) and not same
    if moves:
        all_moved = all(name in moves or weights[name].ndim < 2 for name in away)
        decisive = _beyond_rounding(inv, small, moves, away) or (decisive and not all_moved)
    makes = f"make an error of {error_size(own[output])} at output '{output}', of {error_size(before[output])}"
    inv.record.answered(
        QUESTION,
        f"{'no' if decisive else 'yes'}: {len(away)} are more than a step away; without quantizers they {makes}",
        rows_away=away,
        explained=explained,
    )
    if not decisive:
        return None
    if not is_decisive(explained):
        output = max(own, key=lambda name: own[name])
        away, explained = {name: away[name] for name in moves}, LEAST_BLAMED
        makes = (
            f"make an error of {error_size(own[output])} at output '{output}', of "
            f"{error_size(before.get(output, own[output]))}"
        )
    ordered = sorted(away.items(), key=lambda item: (item[0] not in moves, -item[1]))
    culprits = [_culprit(matched, name, share, moves.get(name, ())) for name, share in ordered]
    return _verdict(inv, matched, explained, culprits, f"without any quantizer such weights {makes}")


def _of_other_numbers(inv: Investigation, small: Quantization) -> Conclusion | None:
    """Return the verdict that single numbers of weights are others than the original's; None when none matter."""
    matched, weights, before = small.matched, small.weights, small.errors
    graph = matched.paired.graph
    there, counts = dict(weights), {}
    for pair in quantizers(graph):
        numbers = _numbers(graph, pair, weights)
        if numbers is not None and (others := scattered(*numbers)).any():
            there[pair.result] = np.where(others, numbers[1], numbers[0]).astype(weights[pair.result].dtype)
            counts[pair.result] = int(others.sum())
    if not counts:
        inv.record.answered(QUESTION, AS_ORIGINAL)
        return None
    own = small.errors_of(inv, there)
    output, explained = small.most_explained(own)
    no = is_decisive(explained)
    makes = f"make an error of {error_size(own[output])} at output '{output}', of {error_size(before[output])}"
    inv.record.answered(
        QUESTION,
        f"{'no' if no else 'yes'}: single numbers of {len(counts)} are far away; without quantizers they {makes}",
        numbers_away=counts,
        explained=explained,
    )
    if not no:
        return None
    ordered = sorted(counts, key=lambda name: -counts[name] / weights[name].size)
    among = {name: f"{counts[name]} of {weights[name].size} numbers" for name in ordered}
    reasons = {name: f"has a weight '{name}' of which {among[name]} are not the original's rounded" for name in ordered}
    culprits = [_reader(matched, name, reason) for name, reason in reasons.items()]
    return _verdict(inv, matched, explained, culprits, f"without any quantizer such numbers {makes}")


def _verdict(
    inv: Investigation, matched: Correspondence, explained: float, culprits: Sequence[Culprit], makes: str
) -> Conclusion:
    """Return the verdict on ops that read other weights."""
    first = culprits[0]
    others = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    target, reference = str(matched.changed.path), str(inv.question.reference)
    return Conclusion(
        VerdictKind.MODEL_CHANGED,
        blamed(explained),
        f"the target's model is a quantization of another model: {first.op_type} '{first.node}'{others} "
        f"{first.reason}; {makes}",
        culprits=culprits[:10],
        next=[
            triage_command(
                inv.question, "run", "--reference", reference, "--target", reference, "--target-model", target
            )
        ],
    )


def _beyond_rounding(
    inv: Investigation,
    small: Quantization,
    moves: Mapping[str, Sequence[WeightMove]],
    away: Collection[str],
) -> bool:
    """Return whether rows that moved make more of an error than their rounding alone.

    They do not where two weights were rescaled together, to share the range of integers between them.
    """
    weights, floors = small.weights, small.floors
    graph, golden = small.matched.paired.graph, inv.golden.outputs(small.feed)
    pairs = {pair.result: pair for pair in quantizers(graph)}
    there = {name: dequantized(graph, pairs[name]) for name in away if weights[name].ndim < 2}  # biases, in fine steps
    rounded: dict[str, np.ndarray] = {}
    for name, found in moves.items():
        there[name], rounded[name] = moved(weights[name], dequantized(graph, pairs[name]), found)
    least = small.errors_of(inv, {**weights, **rounded})
    limits = {name: of_rounded_rows(error, floors.get(name, 0.0), golden[name].size) for name, error in least.items()}
    errors = small.errors_of(inv, {**weights, **there})
    return any(error > limits[name] for name, error in errors.items())


def moves_of(graph: Graph, value: str, weights: Mapping[str, np.ndarray]) -> tuple[WeightMove, ...]:
    """Return the rows of a dequantized weight that were put elsewhere or rescaled before it was quantized."""
    pair = next(pair for pair in quantizers(graph) if pair.result == value)
    numbers = _numbers(graph, pair, weights)
    return () if numbers is None else weight_moves(*numbers)


def _numbers(
    graph: Graph, pair: Quantizer, weights: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the original's numbers of a weight, the dequantized ones, and the steps; None where there are none."""
    if not pair.of_weight or pair.result not in weights or pair.dtype.is_float:
        return None
    was, now = weights[pair.result].astype(np.float64), dequantized(graph, pair).astype(np.float64)
    if was.shape != now.shape or not was.size:
        return None
    return was, now, np.maximum(steps(graph, pair, was.ndim), np.finfo(np.float64).tiny)


def share_beyond(graph: Graph, pair: Quantizer, weights: Mapping[str, np.ndarray]) -> float:
    """Return the share of rows, or columns, of a weight half of whose numbers are over a step from the original's."""
    numbers = _numbers(graph, pair, weights)
    if numbers is None:
        return 0.0
    was, now, step = numbers
    away = np.abs(now - was) / step
    if was.ndim < 2:  # one row; an end of int32 is a mistake by itself
        return float(np.mean(away > 1.0)) if at_the_ends(graph, pair.result) else beyond_a_step(away.reshape(1, -1))
    return max(beyond_a_step(np.moveaxis(away, axis, 0).reshape(away.shape[axis], -1)) for axis in (0, was.ndim - 1))


def _culprit(matched: Correspondence, value: str, share: float, moves: Sequence[WeightMove]) -> Culprit:
    """Return the op that reads a weight."""
    where = "all its rows or columns" if share == 1.0 else f"{percent(share)} of its rows or columns"
    reason = f"has a weight '{value}' that is not the original's rounded: in {where} it is more than a step away"
    if clipped := at_the_ends(matched.paired.graph, value):
        return _reader(matched, value, clipped)
    if moves:
        more = f", and similarly {len(moves) - 1} more" if len(moves) > 1 else ""
        reason += f"; {moves[0].words}{more}"
    return _reader(matched, value, reason)


def _reader(matched: Correspondence, value: str, reason: str) -> Culprit:
    """Return the op that reads a weight as a culprit."""
    graph = matched.paired.graph
    reader = next(iter(graph.consumers(value)), None) or graph.producer(value)
    assert reader is not None
    user = matched.in_file(reader.name)
    return Culprit(user.name, user.op_type, user.outputs[0], reason=reason, change="weight")
