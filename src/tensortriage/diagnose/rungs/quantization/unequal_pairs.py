"""Pairs whose halves have another scale or zero point: what a DequantizeLinear brings back is not what was quantized.

No calibration writes such a pair, so that nothing need be evaluated to know it; the same file with one scale and zero
point in both halves tells what that costs, and is the remedy.
"""

import contextlib
from collections.abc import Sequence

import numpy as np

from tensortriage.diagnose.measurements.evidence import Calibrated, Findings
from tensortriage.diagnose.rungs.quantization.model_errors import output_errors
from tensortriage.diagnose.rungs.rung import Answer
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.errors import DataError, EngineError
from tensortriage.model.ir.graph import Graph
from tensortriage.model.quantization.qdq import Quantizer
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.values.text import magnitude

QUESTION = "is the target's model a sound quantization?"
_NAMED = 12


def unequal_pairs(graph: Graph, pairs: Sequence[Quantizer]) -> list[tuple[Quantizer, str]]:
    """Return the pairs whose halves differ in scale or zero point, with the difference in words."""
    found = []
    for pair in pairs:
        if pair.of_weight:
            continue
        scale, zero = (*graph.node(pair.quantize).inputs[1:], "")[:2]
        for word, given, own in (("scale", scale, pair.scale), ("zero point", zero, pair.zero_point)):
            one, other = _numbers(graph, given), _numbers(graph, own)
            if (one.size != other.size and 1 not in (one.size, other.size)) or not np.all(one == other):
                found.append((pair, f"its {word} is {_few(other)}, that of its QuantizeLinear {_few(one)}"))
    return found


def of_unequal(
    inv: Investigation, beside: Correspondence, unequal: Sequence[tuple[Quantizer, str]], commands: Sequence[str]
) -> Answer:
    """Return the verdict on such pairs.

    Args:
        inv: The investigation, of the original.
        beside: The quantized model next to it.
        unequal: The pairs, and what is other.
        commands: What to run next.
    """
    inv.record.answered(
        QUESTION, f"no: the halves of {len(unequal)} pairs differ", pairs=[pair.dequantize for pair, _ in unequal]
    )
    named = [(beside.in_file(pair.dequantize), pair.result, reason) for pair, reason in unequal[:_NAMED]]
    culprits = [Culprit(node.name, node.op_type, value, reason=reason) for node, value, reason in named]
    first = culprits[0]
    others = f", and so of {len(unequal) - 1} more" if len(unequal) > 1 else ""
    summary = (
        f"{first.op_type} '{first.node}' does not restore what was quantized: {first.reason}{others}; both halves of "
        f"a pair need the same scale and zero point"
    )
    verdict = Conclusion(VerdictKind.QUANTIZATION, OBSERVED, summary, culprits=culprits, next=commands)
    return Answer(verdict, Findings(calibrated=_mended(inv, beside, unequal)))


def _mended(inv: Investigation, beside: Correspondence, unequal: Sequence[tuple[Quantizer, str]]) -> Calibrated | None:
    """Return the model with the numbers of the QuantizeLinear in both halves, where that brings outputs nearer."""
    graph, values = beside.paired.graph, dict[str, np.ndarray]()
    for pair, _ in unequal:
        scale, zero = (*graph.node(pair.quantize).inputs[1:], "")[:2]
        for given, own in ((scale, pair.scale), (zero, pair.zero_point)):
            if own and given and graph.constants[own].shape == graph.constants[given].shape:
                values[own] = graph.weight(given)
    feed, mended = inv.question.feeds[0], freeze(beside.paired, values)
    with contextlib.suppress(EngineError, DataError):
        before, after = output_errors(inv, beside.paired, feed), output_errors(inv, mended, feed)
        output = max(before, key=lambda name: before[name])
        if after[output] < before[output]:
            words = "one scale and zero point in both halves of each pair"
            return Calibrated(mended, output, before[output], after[output], "pair", words)
    return None


def _numbers(graph: Graph, name: str) -> np.ndarray:
    return np.ravel(graph.weight(name)).astype(np.float64) if name else np.zeros(1)


def _few(numbers: np.ndarray) -> str:
    """Return a number, or how many there are."""
    return (
        magnitude(numbers[0], 4) if numbers.size == 1 else f"{numbers.size} numbers from {magnitude(numbers[0], 4)} on"
    )
