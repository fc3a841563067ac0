"""Was a quantizer made wrong? Asked of 8-bit files once it is known that they, or what they cost, are at fault.

The figures of a quantizer say by how much it does not fit; its numbers often say what was done. Where integers are to
blame, those that rounding to nearest makes are tried, and the gain is told.
"""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    OBSERVED,
    Conclusion,
    Correspondence,
    Culprit,
    DType,
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
from tensortriage_quantize.blocks_of_file import blocked_weights
from tensortriage_quantize.made_wrong import StoredInteger, prepared, wrong_integers, wrong_scale
from tensortriage_quantize.made_wrong_blocks import wrong_blocks

QUESTION = "was a quantizer made wrong?"
_KINDS = (VerdictKind.QUANTIZATION, VerdictKind.MODEL_CHANGED, VerdictKind.ROUNDING)
_NAMED = 3
_PLURAL = {"has": "have", "holds": "hold", "is": "are", "takes": "take", "was": "were"}
"""Verbs with which the words about one quantizer begin, and those about several."""
_NEAREST, _REPAIRED = "integers rounded to nearest by its scales", "that put right"


@dataclasses.dataclass(frozen=True, slots=True)
class _Wrong:
    """A quantizer that was made wrong.

    Attributes:
        node: It, of the file's form in pairs.
        op_type: Its operator.
        value: What it makes.
        words: What was done.
        right: Values, by name, that others put right.
        by: How these are made.
    """

    node: str
    op_type: str
    value: str
    words: str
    right: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    by: str = ""

    @classmethod
    def of(cls, pair: Quantizer, words: str, integers: np.ndarray | None = None) -> "_Wrong":
        """Return a pair that was made wrong, and the integers that belong there."""
        right = {} if integers is None else {pair.stored: integers}
        op_type = "QuantizeLinear" if pair.quantize else "DequantizeLinear"
        return cls(pair.quantize or pair.dequantize, op_type, pair.result, words, right, _NEAREST)


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
    wrong = [*_weights(matched), *_blocks(matched), *_scales(matched, evidence)]
    if not wrong:
        if quantizers(matched.paired.graph):
            inv.record.answered(QUESTION, "no, as far as their numbers show")
        return None
    told, gain, kind = _told(wrong), _gain(inv, matched, wrong), found.kind
    inv.record.answered(QUESTION, f"yes: {told}", nodes=[each.node for each in wrong])
    blocks = [each for each in wrong if each.by == _REPAIRED]
    if kind is VerdictKind.ROUNDING:
        if not gain:
            words = f"{found.summary}; besides, {_told(blocks)}: of less matter here than rounding"
            return dataclasses.replace(found, summary=words) if blocks else None  # seen in every number
        culprit = Culprit(*_place(matched, wrong[0]), reason=wrong[0].words)
        return dataclasses.replace(
            found, kind=VerdictKind.QUANTIZATION, confidence=OBSERVED, summary=f"{told}{gain}", culprits=[culprit]
        )
    if gain and kind is VerdictKind.MODEL_CHANGED and blocks and not _is_known(matched, found, blocks):
        said, _, _ = found.summary.partition(": ")  # without the op at which numbers seemed to part
        culprits = [Culprit(*_place(matched, each), reason=each.words) for each in blocks]
        return dataclasses.replace(found, summary=f"{told}{gain}; {said}", culprits=culprits, confidence=OBSERVED)
    return dataclasses.replace(found, summary=f"{told}{gain}; {found.summary}")


def _place(matched: Correspondence, wrong: _Wrong) -> tuple[str, str, str]:
    """Return node, operator and value of a quantizer in the file."""
    node = matched.in_file(wrong.node)
    return node.name, node.op_type, wrong.value


def _is_known(matched: Correspondence, found: Conclusion, wrong: Sequence[_Wrong]) -> bool:
    """Return whether the first culprit is one of the quantizers, or reads what one makes."""
    graph = matched.paired.graph
    readers = (node.name for each in wrong for node in graph.consumers(each.value))
    known = {matched.in_file(name).name for name in (*(each.node for each in wrong), *readers)}
    return not found.culprits or found.culprits[0].node in known


def _told(wrong: Sequence[_Wrong]) -> str:
    """Return what was done to which quantizers, those of one kind together."""
    nodes: dict[str, list[str]] = {}
    for each in wrong:
        nodes.setdefault(each.words, []).append(f"{each.op_type} '{each.node}'")
    said = []
    for words, names in nodes.items():
        more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
        verb, _, rest = words.partition(" ")
        said.append(f"{enumeration([*names[:_NAMED], *more])} {_PLURAL[verb] if names[1:] else verb} {rest}")
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
            yield _Wrong.of(pair, words, weight.nearest)


def _blocks(matched: Correspondence) -> Iterator[_Wrong]:
    """Yield weights stored in blocks that another reading makes the original's."""
    graph, was = matched.paired.graph, matched.original.graph
    floats = [name for name, spec in was.constants.items() if spec.dtype is DType.FLOAT]
    for each in blocked_weights(graph):
        sizes = Counter[object](each.shape)
        arrays = (was.weight(name) for name in floats if Counter(was.constants[name].shape or ()) == sizes)
        turned = (way for array in arrays for way in (array, *([array.swapaxes(-1, -2)] if array.ndim > 1 else [])))
        read = wrong_blocks(each.stored, (each.rows(array) for array in turned if array.shape == each.shape))
        if read is not None:
            right = each.right(graph, read.right)
            yield _Wrong(each.node.name, each.node.op_type, each.value, read.words, right, _REPAIRED)


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
            yield _Wrong.of(pair, f"has a scale that {words}")
        elif pair.value in inputs and scale.size == 1:
            (least, most), given = _range(graph, pair), _range(right, pair)
            usual, data = prepared(least, most), prepared(*given)
            called = f", {usual}," if usual and usual != data else ""
            if called and scale[0] == 1.0:  # what calibrators write for lack of a range, too
                called = f", {usual}, or on nothing but 0,"
            yield _Wrong.of(
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
    """Return what putting them right gains, as the rest of a sentence; empty where that is not most of the error."""
    values = {name: array for each in wrong for name, array in each.right.items()}
    if not values:
        return ""
    by = " and ".join(dict.fromkeys(each.by for each in wrong if each.right))
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
            return f"; with {by} the error of output '{name}' falls from {error_size(was)} to {error_size(now)}"
    return ""
