"""Do int8 kernels overflow int16? The effect of a processor without VNNI on products of 8-bit numbers.

Kernels for x86 without VNNI add pairs of products in saturating int16, so that a sound quantized model with large
weights loses the excess (`tensortriage.compare.quantization.int16_sums`). The proof is the cure: weights in uint8 stand
for the same numbers and are multiplied by other kernels, so that nothing else can disappear with them; of weights in 7
bits every pair fits.

A reference with such losses is no reference: float64 takes its place. A target is to blame where it loses more than the
cost of rounding to 8 bits; the judge allows less than that (row ``int16-sums`` of the registry).
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import difference
from tensortriage.compare.judgement.within import counts, is_decisive
from tensortriage.compare.quantization.int16_sums import Int16Sums, int16_sums, own_range, windows
from tensortriage.diagnose.measurements.evidence import Calibrated, Evidence, Findings
from tensortriage.diagnose.measurements.suggested_commands import reduce_command
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.cpu_features import PAIRED_BY_TAP, sums_in_int16
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED
from tensortriage.envelope.reference import cut_off, cut_off_in_words
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.int8_products import Int8Product, int8_products, unsigned_weights
from tensortriage.model.quantization.int16_products import by_tap_padded
from tensortriage.model.quantization.qdq import seven_bit_weights
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.store import TensorStore
from tensortriage.values.text import error_size, magnitude

QUESTION = "do sums of 8-bit products fit in int16?"
OF_REFERENCE = "does the reference add 8-bit products exactly?"
CURES = "weights in uint8 (QUInt8) or in 7 bits (reduce_range), or a processor with VNNI"
SEVEN_BITS = "weights in 7 bits (reduce_range), or a processor with VNNI"
"""For engines that do not multiply integers by uint8 weights."""
SWITCH = "config.session.x64quantprecision"
"""Session option of ONNX Runtime that makes it turn int8 weights into uint8 ones as it builds."""


@frozen_dataclass
class OtherWeights:
    """A model whose weights meet sums that are exact.

    Attributes:
        name: Name of the remedy.
        words: The change, in words.
        rewrite: Returns the model; None where there is nothing to change.
        is_exact: Whether its weights are the same numbers.
        not_on: Engines that do not multiply integers then: OpenVINO 2026.4.1 quantizes otherwise by uint8 weights.
    """

    name: str
    words: str
    rewrite: Callable[[Model], Model | None]
    is_exact: bool
    not_on: tuple[str, ...] = ()


WAYS = (
    OtherWeights("unsigned-weights", "the same weights in uint8", unsigned_weights, True, ("openvino",)),
    OtherWeights("seven-bit-weights", "its weights in 7 bits", seven_bit_weights, False),
)
"""Changes to try, the smallest first."""


@rung(OF_REFERENCE, gives=("exact_reference",), cost="without VNNI, of models with int8 weights: a run on every feed")
def saturating_reference(inv: Investigation, _: Evidence) -> Answer | None:
    """Does the reference saturate sums in int16? Then float64 is the reference."""
    models = [each for each in (inv.model, inv.question.target_model) if each is not None]
    reference = inv.question.reference
    for model in models:
        lost = max((cut_off(inv.lab, reference, model, feed) for feed in inv.question.feeds), default=0.0)
        if lost:
            words = cut_off_in_words(reference, lost)
            inv.record.answered(OF_REFERENCE, f"no: {words}", error=lost)
            exact = dataclasses.replace(inv.question, reference=CORRECTLY_ROUNDED)
            return Answer(findings=Findings(exact_reference=words), question=exact)
    return None


@rung(
    QUESTION,
    reads=("results", "in_context"),
    gives=("calibrated",),
    cost="a build and a run",
    ends=(VerdictKind.QUANTIZATION,),
)
def saturating_sums(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Does the target saturate sums in int16, on a processor without VNNI?"""
    hidden = any(figure.nonfinite_mismatch for figure in (evidence.in_context or {}).values())
    if hidden or not sums_in_int16(inv.question.target.name):
        return None
    products = int8_products(inv.model.graph)
    beyond = _beyond(inv, evidence, products) if products else {}
    if not beyond:
        if products:
            inv.record.answered(QUESTION, f"yes, in all {len(products)} ops that multiply 8-bit numbers")
        return None
    output = evidence.worst_feed.worst_output()[0]
    before = evidence.worst_feed.errors[output]
    try:
        cure, explained = _cure(inv, evidence, output, before)
    except EngineError as error:
        inv.record.answered(QUESTION, f"unknown: with other weights: {error.message}")
        return None
    if cure is None:
        return None
    first = next(iter(beyond))
    answer = "no" if is_decisive(explained) else "not in every op, but that does not explain the error"
    left = before * (1.0 - explained) ** 0.5
    words = f"with {cure.words} target and reference differ by {error_size(left)} instead of {error_size(before)}"
    inv.record.answered(
        QUESTION,
        f"{answer}: in '{first}' they reach {beyond[first].largest:,.0f}; {words}",
        error=before,
        error_without=left,
        sums={name: {"largest": s.largest, "saturated": s.saturated, "error": s.error} for name, s in beyond.items()},
    )
    if not is_decisive(explained):
        return None
    most = beyond[first].error
    target = inv.question.target
    cures = SEVEN_BITS if target.name in WAYS[0].not_on else CURES
    worst = [(inv.model.graph.node(name), sums) for name, sums in beyond.items() if counts(sums.error, most)]
    culprits = [_culprit(node, sums, cures) for node, sums in worst]
    switched = target.with_options({**target.options, SWITCH: "1"})
    verdict = Conclusion(
        VerdictKind.QUANTIZATION,
        blamed(explained),
        f"{target} adds products of 8-bit numbers in saturating int16 on this processor, which has no VNNI: in "
        f"{culprits[0].op_type} '{first}' {culprits[0].reason}; {words}, in output '{output}'",
        culprits=culprits,
        next=[
            triage_command(inv.question, "diagnose", "--target", str(target), "--fix", "exact_sums.onnx"),
            *([triage_command(inv.question, "run", "--target", str(switched))] * (target.name == "onnxruntime")),
            reduce_command(inv.question),
        ],
    )
    return Answer(verdict, Findings(calibrated=cure))


def _cure(inv: Investigation, evidence: Evidence, output: str, before: float) -> tuple[Calibrated | None, float]:
    """Return the model with other weights that helps, and the share of the error that is gone with it.

    The last one that was tried, where none helps; None where there is none to try.

    Raises:
        EngineError: When an engine fails on the last one.
    """
    target, feed, cure, explained = inv.question.target, evidence.feed, None, 0.0
    golden = np.asarray(inv.golden.outputs(feed)[output])
    ways = [way for way in WAYS if target.name not in way.not_on and way.rewrite(inv.model) is not None]
    for number, way in enumerate(ways, 1):
        model = way.rewrite(inv.model)
        assert model is not None
        try:
            made = inv.lab.outputs(target, model, feed)[output]
            right = golden if way.is_exact else inv.lab.outputs(inv.question.reference, model, feed)[output]
        except EngineError:
            if number == len(ways):
                raise
            continue
        after = difference(right, made)
        explained = 1.0 - (after / before) ** 2 if np.isfinite(after) else 0.0
        cure = Calibrated(model, output, before, max(after, difference(golden, right)), kind=way.name, words=way.words)
        if is_decisive(explained):
            break
    return cure, explained


def _beyond(inv: Investigation, evidence: Evidence, products: tuple[Int8Product, ...]) -> dict[str, Int16Sums]:
    """Return the saturated sums by op, the worst first."""
    graph, by_tap = inv.model.graph, inv.question.target.name in PAIRED_BY_TAP
    values = {name: np.asarray(array) for name, array in evidence.feed.tensors.items()}
    golden, found = inv.golden.of(evidence.feed), dict[str, Int16Sums]()
    for each in products:
        for numbers, zero, columns in _factors(each, lambda name: _array(name, graph, golden, values), by_tap=by_tap):
            sums = int16_sums(numbers, zero, columns)
            if sums.saturated > 0.0 and (each.node.name not in found or sums.error > found[each.node.name].error):
                found[each.node.name] = sums
    return dict(sorted(found.items(), key=lambda item: -item[1].error))


def _array(name: str, graph: Graph, golden: TensorStore, feed: Mapping[str, np.ndarray]) -> np.ndarray | None:
    if name in graph.constants:
        return graph.weight(name)
    return np.asarray(golden[name]) if name and name in golden else feed.get(name)


def _factors(
    product: Int8Product, array: Callable[[str], np.ndarray | None], *, by_tap: bool
) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
    """Yield a multiplication as products of matrices: rows, their zero point, columns; none if it is not looked into.

    What an operator quantizes itself is put in uint8 by its own range here; a state inside, by that of all steps.
    """
    node, weight, points = product.node, array(product.weight), array(product.zero)
    data = array(product.data or node.outputs[0])
    if data is None or weight is None:
        return
    zero = int(points.reshape(-1)[0]) if points is not None and points.size == 1 else 0
    if weight.ndim == 3 and "LSTM" in node.op_type:  # directions, terms, gates; its results are steps, directions, ...
        rows = [data if product.data else data[:, number] for number in range(len(weight))]
        yield from ((*own_range(each.reshape(-1, each.shape[-1])), w) for each, w in zip(rows, weight, strict=True))
        return
    if data.dtype not in (np.int8, np.uint8):
        data, zero = own_range(data)
    if by_tap and weight.ndim > 2 and data.shape[1] == weight.shape[1]:
        data, weight = by_tap_padded(data), by_tap_padded(weight)
    if "Conv" not in node.op_type and weight.ndim == 2:
        rows_of = data.T if node.attributes.get("transA") else data.reshape(-1, data.shape[-1])
        yield rows_of, zero, weight.T if node.attributes.get("transB") else weight
        return
    plain = node.attributes.get("group", 1) == 1 and not {*_dilations(node)} - {1}
    if node.op_type in ("Conv", "QLinearConv") and plain:
        yield windows(data, weight.shape[2:], zero), zero, np.moveaxis(weight, 1, -1).reshape(len(weight), -1).T


def _dilations(node: Node) -> tuple[int, ...]:
    dilations = node.attributes.get("dilations", ())
    return tuple(dilations) if isinstance(dilations, (tuple, list)) else ()


def _culprit(node: Node, sums: Int16Sums, cures: str) -> Culprit:
    return Culprit(
        node.name,
        node.op_type,
        node.outputs[0],
        reason=f"sums of two products reach {sums.largest:,.0f}, int16 ends at 32,767, and "
        f"{magnitude(100.0 * sums.saturated, 2)} % of them are cut off, an error of {error_size(sums.error)}; cure: "
        f"{cures}",
    )
