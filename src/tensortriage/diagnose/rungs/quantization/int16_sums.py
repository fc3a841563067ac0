"""Do int8 kernels run out of int16? What a processor without VNNI does to products of 8-bit numbers.

Kernels for x86 without VNNI add pairs of products in saturating int16, so that a sound quantized model with large
weights loses what does not fit. It shows only where an engine fuses the operator with its quantizers; the operators
alone are right. The proof is the cure: with weights in 7 bits every pair fits, and the target must agree with the
reference on that model.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import counts, is_decisive
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.compare.quantization.int16_sums import Int16Sums, int16_sums, windows
from tensortriage.diagnose.measurements.evidence import Calibrated, Evidence, Findings
from tensortriage.diagnose.measurements.suggested_commands import reduce_command
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.errors import EngineError
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import Quantizer, multiplications, seven_bit_weights
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.store import TensorStore
from tensortriage.values.text import error_size, magnitude

QUESTION = "do sums of 8-bit products fit in int16?"
CURE = "weights in 7 bits (triage convert FLOAT.onnx --int8 --reduce-range), or a processor with VNNI"
_ELSEWHERE = ("tensorrt", "float64", "emulate")
"""Engines that have no such kernels."""


@rung(
    QUESTION,
    reads=("results", "in_context"),
    gives=("calibrated",),
    cost="a build and a run",
    ends=(VerdictKind.QUANTIZATION,),
)
def saturating_sums(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Does the target lose what does not fit in int16, on a processor that has nothing better?"""
    hidden = any(figure.nonfinite_mismatch for figure in (evidence.in_context or {}).values())
    if hidden or inv.question.target.name in _ELSEWHERE or not sums_in_int16():
        return None
    products = multiplications(inv.model.graph)
    narrow = seven_bit_weights(inv.model) if products else None
    if narrow is None:
        return None
    beyond = _beyond(inv, evidence, products)
    if not beyond:
        inv.record.answered(QUESTION, f"yes, in all {len(products)} ops that multiply them")
        return None
    output = evidence.worst_feed.worst_output()[0]
    before = evidence.worst_feed.errors[output]
    try:
        after, predicted = _with(inv, evidence, narrow, output)
    except EngineError as error:
        inv.record.answered(QUESTION, f"unknown: with weights in 7 bits: {error.message}")
        return None
    explained = 1.0 - (after / before) ** 2 if np.isfinite(after) else 0.0
    first = next(iter(beyond))
    answer = "no" if is_decisive(explained) else "not in every op, but that does not explain the error"
    inv.record.answered(
        QUESTION,
        f"{answer}: in '{first}' they reach {beyond[first].largest:,.0f}; with weights in 7 bits, which always fit, "
        f"target and reference differ by {error_size(after)} instead of {error_size(before)}",
        error=before,
        error_in_7_bits=after,
        sums={name: {"largest": s.largest, "saturated": s.saturated, "error": s.error} for name, s in beyond.items()},
    )
    if not is_decisive(explained):
        return None
    words = "its weights in 7 bits, so that sums of two products fit in int16"
    cure = Calibrated(narrow, output, before, predicted, kind="seven-bit-weights", words=words)
    most = beyond[first].error
    culprits = [_culprit(inv.model.graph.node(name), sums) for name, sums in beyond.items() if counts(sums.error, most)]
    verdict = Conclusion(
        VerdictKind.QUANTIZATION,
        blamed(explained),
        f"{inv.question.target} adds products of 8-bit numbers in saturating int16 on this processor, which has no "
        f"VNNI: in {culprits[0].op_type} '{first}' {culprits[0].reason}; with such weights target and reference "
        f"differ by {error_size(after)} in output '{output}', instead of {error_size(before)}",
        culprits=culprits,
        next=[
            triage_command(inv.question, "diagnose", "--target", str(inv.question.target), "--fix", "seven_bits.onnx"),
            reduce_command(inv.question),
        ],
    )
    return Answer(verdict, Findings(calibrated=cure))


def _beyond(
    inv: Investigation, evidence: Evidence, products: Mapping[str, tuple[Quantizer, Quantizer]]
) -> dict[str, Int16Sums]:
    """Return what becomes of the sums of the ops in which some do not fit, the worst first."""
    graph, golden = inv.model.graph, inv.golden.of(evidence.feed)
    saturated_ops = {}
    for name, (data, weight) in products.items():
        numbers = _integers(data, graph, golden), _integers(weight, graph, golden)
        points = np.ravel(graph.weight(data.zero_point)) if data.zero_point else np.zeros(1)
        zero = int(points[0]) if points.size == 1 else 0
        if numbers[0] is None or numbers[1] is None:
            continue
        factors = _factors(graph.node(name), numbers[0], numbers[1], zero)
        if factors is not None and (sums := int16_sums(factors[0], zero, factors[1])).saturated > 0.0:
            saturated_ops[name] = sums
    return dict(sorted(saturated_ops.items(), key=lambda item: -item[1].error))


def _integers(pair: Quantizer, graph: Graph, golden: TensorStore) -> np.ndarray | None:
    if pair.of_weight:
        return graph.weight(pair.stored)
    return np.asarray(golden[pair.stored]) if pair.stored in golden else None


def _factors(node: Node, data: np.ndarray, weight: np.ndarray, zero: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a multiplication as a product of two matrices; None for one that is not looked into."""
    if node.op_type == "MatMul" and weight.ndim == 2:
        return data.reshape(-1, data.shape[-1]), weight
    if node.op_type == "Gemm":
        return data.T if node.attributes.get("transA") else data, weight.T if node.attributes.get("transB") else weight
    if node.op_type == "Conv" and node.attributes.get("group", 1) == 1 and not {*_dilations(node)} - {1}:
        columns = np.moveaxis(weight, 1, -1).reshape(len(weight), -1).T
        return windows(data, weight.shape[2:], zero), columns
    return None


def _dilations(node: Node) -> tuple[int, ...]:
    dilations = node.attributes.get("dilations", ())
    return tuple(dilations) if isinstance(dilations, (tuple, list)) else ()


def _with(inv: Investigation, evidence: Evidence, narrow: Model, output: str) -> tuple[float, float]:
    """Return how far the target is from the reference on the narrowed model, and that reference from the original."""
    golden = np.asarray(inv.golden.outputs(evidence.feed)[output])
    target, reference = (
        inv.lab.outputs(spec, narrow, evidence.feed)[output] for spec in (inv.question.target, inv.question.reference)
    )
    if not golden.shape == target.shape == reference.shape:
        return float("inf"), float("inf")
    return error_of(measure(reference, target)), error_of(measure(golden, reference))


def _culprit(node: Node, sums: Int16Sums) -> Culprit:
    return Culprit(
        node.name,
        node.op_type,
        node.outputs[0],
        reason=f"sums of two products reach {sums.largest:,.0f}, int16 ends at 32,767, and "
        f"{magnitude(100.0 * sums.saturated, 2)} % of them are cut off, an error of {error_size(sums.error)}; cure: "
        f"{CURE}",
    )
