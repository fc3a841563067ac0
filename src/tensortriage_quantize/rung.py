"""Was a quantizer made wrong? Asked of 8-bit files once it is known that they, or what they cost, are at fault.

The figures of a quantizer say by how much it does not fit; its numbers often say what was done. Where integers are to
blame, those that rounding to nearest makes are tried, and the gain is told.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    OBSERVED,
    Conclusion,
    Correspondence,
    Culprit,
    EngineError,
    Evidence,
    Graph,
    Investigation,
    Quantizer,
    TriageError,
    VerdictKind,
    enumeration,
    error_of,
    error_size,
    freeze,
    is_decisive,
    measure,
    quantizers,
    rung,
)
from tensortriage_quantize.made_wrong import StoredInteger, prepared, wrong_integers, wrong_scale

QUESTION = "was a quantizer made wrong?"
_KINDS = (VerdictKind.QUANTIZATION, VerdictKind.MODEL_CHANGED, VerdictKind.ROUNDING)
_NAMED = 3


@dataclasses.dataclass(frozen=True, slots=True)
class _Wrong:
    """A quantizer that was made wrong: its pair, what was done, and the integers that belong there."""

    pair: Quantizer
    words: str
    integers: np.ndarray | None = None


@rung(
    QUESTION,
    reads=("concluded", "model_diff", "calibrated"),
    cost="a run of the reference where integers of a file are rounded in another way than to nearest",
    ends=_KINDS,
    after="what is at fault?",
)
def made_wrong(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Tell what was done to the quantizers of a file, where their numbers show it."""
    found, matched = evidence.concluded, evidence.model_diff
    if found is None or matched is None or found.kind not in _KINDS:
        return None
    wrong = [*_weights(matched), *_scales(matched, evidence)]
    if not wrong:
        if quantizers(matched.paired.graph):
            inv.record.answered(QUESTION, "no, as far as their numbers show")
        return None
    told, gain, kind = _told(wrong), _gain(inv, matched, wrong), found.kind
    inv.record.answered(QUESTION, f"yes: {told}", nodes=[_node(each.pair) for each in wrong])
    if kind is VerdictKind.ROUNDING:
        if not gain:
            return None
        first = matched.in_file(_node(wrong[0].pair))
        culprit = Culprit(first.name, first.op_type, wrong[0].pair.result, reason=wrong[0].words)
        return dataclasses.replace(
            found, kind=VerdictKind.QUANTIZATION, confidence=OBSERVED, summary=f"{told}{gain}", culprits=[culprit]
        )
    return dataclasses.replace(found, summary=f"{told}{gain}; {found.summary}")


def _told(wrong: Sequence[_Wrong]) -> str:
    """Return what was done to which quantizers, those of one kind together."""
    nodes: dict[str, list[str]] = {}
    for each in wrong:
        nodes.setdefault(each.words, []).append(f"{_kind(each.pair)} '{_node(each.pair)}'")
    said = []
    for words, names in nodes.items():
        more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
        said.append(f"{enumeration([*names[:_NAMED], *more])} {words}")
    return "; ".join(said)


def _weights(matched: Correspondence) -> Iterator[_Wrong]:
    """Yield weights and biases whose integers or scales were made wrong."""
    graph, originals = matched.paired.graph, matched.weights()
    for pair in quantizers(graph):
        if not pair.of_weight or pair.dtype.is_float:
            continue
        was = originals.get(pair.result)
        if was is None and (name := matched.constants.get(pair.result)):
            was = matched.original.graph.weight(name)
        if was is None or graph.weight(pair.stored).dtype.kind not in "iu":
            continue
        zero = graph.weight(pair.zero_point) if pair.zero_point else np.zeros(1)
        scale, zeros = (np.ravel(each).astype(np.float64) for each in (graph.weight(pair.scale), zero))
        weight = StoredInteger(was.astype(np.float64), graph.weight(pair.stored), scale, zeros, pair.axis)
        if words := wrong_integers(weight):
            yield _Wrong(pair, words, weight.nearest)


def _scales(matched: Correspondence, evidence: Evidence) -> Iterator[_Wrong]:
    """Yield quantizers whose scale is told by the one that fits, or by what it was calibrated on."""
    if evidence.calibrated is None:
        return
    graph, right = matched.paired.graph, evidence.calibrated.model.graph
    inputs = {spec.name for spec in matched.paired.inputs}
    for pair in quantizers(graph):
        if pair.of_weight or pair.scale not in right.constants:
            continue
        scale, fits = (np.ravel(each.weight(pair.scale)).astype(np.float64) for each in (graph, right))
        if scale.shape != fits.shape or np.array_equal(scale, fits):
            continue
        if words := wrong_scale(scale, fits):
            yield _Wrong(pair, f"has a scale that {words}")
        elif pair.value in inputs and scale.size == 1:
            (least, most), given = _range(graph, pair), _range(right, pair)
            usual, data = prepared(least, most), prepared(*given)
            called = f", {usual}," if usual and usual != data else ""
            if called and scale[0] == 1.0:  # what calibrators write for lack of a range, too
                called = f", {usual}, or on nothing but 0,"
            yield _Wrong(
                pair,
                f"was calibrated on inputs from {least:.4g} to {most:.4g}{called} where these are from "
                f"{given[0]:.4g} to {given[1]:.4g}: prepare calibration data as the network's input is prepared",
            )


def _range(graph: Graph, pair: Quantizer) -> tuple[float, float]:
    """Return the numbers between which a quantizer rounds."""
    scale = float(np.ravel(graph.weight(pair.scale))[0])
    zero = float(np.ravel(graph.weight(pair.zero_point))[0]) if pair.zero_point else 0.0
    ends = np.iinfo(pair.dtype.numpy)
    return scale * (ends.min - zero), scale * (ends.max - zero)


def _gain(inv: Investigation, matched: Correspondence, wrong: Sequence[_Wrong]) -> str:
    """Return what rounding to nearest gains, as the rest of a sentence; empty where that is not most of the error."""
    values = {each.pair.stored: each.integers for each in wrong if each.integers is not None}
    if not values:
        return ""
    feed = inv.question.feeds[0]
    with contextlib.suppress(EngineError, TriageError):
        golden, before, after = (
            inv.lab.outputs(inv.question.reference, model, feed)
            for model in (matched.original, matched.paired, freeze(matched.paired, values))
        )
        errors = {
            name: [error_of(measure(np.asarray(golden[name]), np.asarray(each[name]))) for each in (before, after)]
            for name in golden
            if name in before
        }
        name = max(errors, key=lambda name: errors[name][0])
        was, now = errors[name]
        if was and is_decisive(1.0 - (now / was) ** 2):
            return (
                f"; with integers rounded to nearest by its scales the error of output '{name}' falls from "
                f"{error_size(was)} to {error_size(now)}"
            )
    return ""


def _node(pair: Quantizer) -> str:
    return pair.quantize or pair.dequantize


def _kind(pair: Quantizer) -> str:
    return "QuantizeLinear" if pair.quantize else "DequantizeLinear"
