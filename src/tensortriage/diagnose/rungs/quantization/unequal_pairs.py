"""DequantizeLinear nodes that do not restore the quantized values: found by their numbers, before any evaluation.

The halves of a pair have another scale or zero point; or the integers of a bias are the original's times a number. No
calibration writes either. The same file with the right numbers shows the cost, and is the remedy.
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.measurements.evidence import Calibrated, Findings
from tensortriage.diagnose.rungs.quantization.model_errors import output_errors
from tensortriage.diagnose.rungs.rung import Answer
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.errors import DataError, EngineError
from tensortriage.model.ir.graph import Graph
from tensortriage.model.quantization.qdq import Quantizer, dequantized
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.values.dtype import DType
from tensortriage.values.text import magnitude, times

QUESTION = "is the target's model a sound quantization?"
_NAMED = 12


@dataclasses.dataclass(frozen=True)
class Unequal:
    """A DequantizeLinear that does not restore the quantized values.

    Attributes:
        words: The difference between both nodes.
        right: The numbers that belong into its constants, by name.
    """

    pair: Quantizer
    words: str
    right: Mapping[str, np.ndarray]


def unequal_pairs(graph: Graph, pairs: Sequence[Quantizer]) -> list[Unequal]:
    """Return the pairs whose halves have another scale or zero point."""
    found = []
    for pair in pairs:
        if pair.of_weight:
            continue
        scale, zero = (*graph.node(pair.quantize).inputs[1:], "")[:2]
        for word, given, own in (("scale", scale, pair.scale), ("zero point", zero, pair.zero_point)):
            one, other = _numbers(graph, given), _numbers(graph, own)
            if (one.size != other.size and 1 not in (one.size, other.size)) or not np.all(one == other):
                same = own and given and graph.constants[own].shape == graph.constants[given].shape
                right = {own: graph.weight(given)} if same else {}
                found.append(
                    Unequal(pair, f"its {word} is {_few(other)}, that of its QuantizeLinear {_few(one)}", right)
                )
    return found


def rescaled_biases(graph: Graph, pairs: Sequence[Quantizer], originals: Mapping[str, np.ndarray]) -> list[Unequal]:
    """Return the biases whose integers, within a step each, are the original's numbers at another scale.

    Args:
        graph: The file, its quantizers written as pairs.
        pairs: Its pairs.
        originals: The original's numbers by the result of the DequantizeLinear.
    """
    found = []
    for pair in pairs:
        if pair.dtype is not DType.INT32 or pair.result not in originals or pair.scale not in graph.constants:
            continue
        was, now = (np.ravel(each).astype(np.float64) for each in (originals[pair.result], dequantized(graph, pair)))
        scale = graph.weight(pair.scale)
        if was.shape != now.shape or not now.any():
            continue
        factor = float(was @ now / (now @ now))
        if factor <= 0.0 or np.all(np.abs(was - now) <= scale) or np.any(np.abs(was - factor * now) > factor * scale):
            continue
        words = (
            f"its scale is {_few(np.ravel(scale))}, with which its integers are {times(1.0 / factor)} the original's "
            f"bias; {_few(np.ravel(scale * factor))} is right, as that of its input times that of its weights"
        )
        found.append(Unequal(pair, words, {pair.scale: (scale * factor).astype(scale.dtype)}))
    return found


def of_unequal(
    inv: Investigation, matched: Correspondence, unequal: Sequence[Unequal], commands: Sequence[str]
) -> Answer:
    """Return the verdict on such nodes.

    Args:
        inv: The investigation, of the original.
        matched: The original and the quantized model, with their nodes matched.
        unequal: The nodes and their differences.
        commands: Commands that follow.
    """
    bias = unequal[0].pair.of_weight
    what = f"{len(unequal)} biases have another scale" if bias else f"the halves of {len(unequal)} pairs differ"
    inv.record.answered(QUESTION, f"no: {what}", pairs=[each.pair.dequantize for each in unequal])
    named = [(matched.in_file(each.pair.dequantize), each) for each in unequal[:_NAMED]]
    culprits = [Culprit(node.name, node.op_type, each.pair.result, reason=each.words) for node, each in named]
    first = culprits[0]
    others = f", and so of {len(unequal) - 1} more" if len(unequal) > 1 else ""
    rule = "" if bias else "; both halves of a pair need the same scale and zero point"
    summary = f"{first.op_type} '{first.node}' does not restore the quantized values: {first.reason}{others}{rule}"
    verdict = Conclusion(VerdictKind.QUANTIZATION, OBSERVED, summary, culprits=culprits, next=commands)
    words = "the right scale of each bias" if bias else "one scale and zero point in both halves of each pair"
    return Answer(verdict, Findings(calibrated=_mended(inv, matched, unequal, words)))


def _mended(inv: Investigation, matched: Correspondence, unequal: Sequence[Unequal], words: str) -> Calibrated | None:
    """Return the model with the right numbers, where that brings outputs nearer."""
    values = {name: array for each in unequal for name, array in each.right.items()}
    feed, mended = inv.question.feeds[0], freeze(matched.paired, values)
    with contextlib.suppress(EngineError, DataError):
        before, after = output_errors(inv, matched.paired, feed), output_errors(inv, mended, feed)
        output = max(before, key=lambda name: before[name])
        if after[output] < before[output]:
            return Calibrated(mended, output, before[output], after[output], "pair", words)
    return None


def _numbers(graph: Graph, name: str) -> np.ndarray:
    return np.ravel(graph.weight(name)).astype(np.float64) if name else np.zeros(1)


def _few(numbers: np.ndarray) -> str:
    """Return a number, or how many there are."""
    return (
        magnitude(numbers[0], 4) if numbers.size == 1 else f"{numbers.size} numbers from {magnitude(numbers[0], 4)} on"
    )
