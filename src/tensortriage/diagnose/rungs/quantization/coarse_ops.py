"""Do a few ops of an 8-bit file lose most of an output, since rounding leaves too little of their own results?

A network that amplifies what each op rounds loses much of its output though every op is rounded well. Where an op
alone, on right operands, loses a tenth of its own result, in its usual channel, what its format costs is no excuse for
it: values of very different size share a scale. If such ops are few and the output comes back without their rounding,
they are to blame.
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import difference
from tensortriage.compare.judgement.thresholds import TOO_COARSE
from tensortriage.compare.judgement.within import is_decisive, is_habit, is_too_coarse
from tensortriage.diagnose.measurements.evidence import Calibrated
from tensortriage.diagnose.measurements.suggested_commands import search_command
from tensortriage.diagnose.rungs.quantization.rounding_costs import RoundingCost, rounding_costs
from tensortriage.diagnose.rungs.quantization.starved_channels import starved_channels
from tensortriage.diagnose.state.confidence import blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, refuse_if
from tensortriage.model.operator_bodies.replace_nodes import with_written
from tensortriage.model.quantization.as_pairs import owner_of, products_as_pairs, scaled_product
from tensortriage.model.quantization.qdq import (
    MULTIPLIES,
    bypass,
    is_quantizer,
    quantizers,
    reads_integer_weights,
    rounds_activations,
)
from tensortriage.model.quantization.quantizer_tools import excluding
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.runs.lab import Lab
from tensortriage.values.store import TensorStore
from tensortriage.values.text import error_size, magnitude, percent

_INTEGER_PRODUCTS = ("MatMulInteger", "ConvInteger")


@frozen_dataclass
class _Product:
    """A product of quantized operands.

    Attributes:
        node: The op that multiplies.
        rounding: Names of the nodes that round its activations.
        stored: Names of the nodes that read its weights.
        data: Its activations before they are rounded; empty where they are an operator's own.
    """

    node: Node
    rounding: tuple[str, ...]
    stored: tuple[str, ...]
    data: str


@frozen_dataclass
class CoarseOps:
    """Ops that lose too much of their own results.

    Attributes:
        nodes: They, in the file, and the share that each loses on right operands, the worst first.
        names: Their names in the network, by those in the file, as far as these are known.
        why: What their activations are like, by name of the node; empty for most.
        without: The file with these in float, tried; where the network is not at hand, its error is the estimate that
            all goes that these alone lose.
    """

    nodes: Sequence[tuple[Node, float]]
    names: Mapping[str, str]
    why: Mapping[str, str]
    without: Calibrated

    @property
    def words(self) -> str:
        """Their loss, as a limit that they break."""
        (node, share), count = self.nodes[0], len(self.nodes)
        others = f" (and {count - 1} more)" if count > 1 else ""
        return (
            f"no op loses {percent(TOO_COARSE)} of its own result by rounding to 8 bits, and with that most of what "
            f"the output loses: {node.op_type} '{node.name}'{others} loses {percent(share)}"
        )

    def conclusion(self, inv: Investigation, file: Model, lost: str) -> Conclusion:
        """Return the verdict that names them.

        Args:
            inv: The investigation.
            file: The file.
            lost: What the output loses, as the subject of a clause.
        """
        culprits = [
            Culprit(
                node.name,
                node.op_type,
                node.outputs[0],
                local_error=share,
                reason=f"fed with right operands it loses {percent(share)} of its own result by rounding them to 8 bits"
                + (f": {self.why[node.name]}" if self.why.get(node.name) else ""),
            )
            for node, share in self.nodes
        ]
        first, count = culprits[0], len(culprits)
        without, one = self.without, count == 1
        explained = 1.0 - (without.after / without.before) ** 2
        others = "" if one else f"; {count} such ops are to blame"
        return Conclusion(
            VerdictKind.QUANTIZATION,
            blamed(explained),
            f"this quantization is too coarse for {'an op' if one else 'a few ops'}: {lost} is lost; {first.op_type} "
            f"'{first.node}': {first.reason}{others}; with {'it' if one else 'them'} in float, output "
            f"'{without.output}' is off by {error_size(without.after)}",
            culprits=culprits,
            next=[
                *excluding(file, (self.names.get(each.node, each.node) for each in culprits)),
                search_command(inv.question, "--int8", "--sqnr", "20"),
            ],
        )


def coarse_ops(
    lab: Lab, beside: Correspondence, feed: Feed, golden: TensorStore, output: str, *, spec: EngineSpec
) -> CoarseOps | None:
    """Return the few ops whose rounding loses most of an output and much of their own results; None where none do.

    Args:
        lab: The lab that evaluates the file.
        beside: The network and its file; the file twice where the network is not at hand, whose weights stay rounded.
        feed: The file's inputs.
        golden: The network's outputs on them.
        output: The output.
        spec: The evaluation of the unrounded file.

    Raises:
        EngineError: When a form of the file cannot be evaluated.
    """
    file = beside.changed
    costs = rounding_costs(lab, file, feed, output, unrounded=spec)
    spread = products_as_pairs(file)
    products = list(_products(spread.graph))
    costly = {each.node.name for each in costs}
    asked = [each for each in products if costly & {_owner(file, name) for name in (*each.rounding, *each.stored)}]
    ends = [each.node.outputs[0] for each in asked]
    wanted = [*ends, *(each.data for each in asked if each.data and each.data not in feed.tensors)]
    lab.progress("measuring what rounding costs each op's own result")
    right = lab.values(spec, spread, feed, list(dict.fromkeys(wanted)))
    lost: list[tuple[_Product, float]] = []
    for each, end in zip(asked, ends, strict=True):
        made = lab.values(_rounding_alone(spec, [each]), spread, feed, [end])[end]
        share = _lost(each.node, np.asarray(right[end]), np.asarray(made))
        if math.isfinite(share) and is_too_coarse(share):
            lost.append((each, share))
    if not lost or is_habit(len(lost), len(products)):
        return None
    network = np.asarray(golden[output])
    before = difference(network, lab.outputs(CORRECTLY_ROUNDED, file, feed)[output])
    mixed = _in_float(beside, spread, [each for each, _ in lost])
    after = difference(network, lab.outputs(CORRECTLY_ROUNDED, mixed, feed)[output])
    if beside.original is file:  # its weights in float are not known: what these alone lose goes with them
        plain, rounded = (
            lab.outputs(each, spread, feed)[output] for each in (spec, _rounding_alone(spec, [op for op, _ in lost]))
        )
        after = math.sqrt(max(before**2 - difference(plain, rounded) ** 2, 0.0))
    if not math.isfinite(after) or not is_decisive(1.0 - (after / before) ** 2):
        return None
    named = [
        (file.graph.node(_owner(file, each.node.name)), share) for each, share in sorted(lost, key=lambda x: -x[1])
    ]
    sizes = {**feed.tensors, **{each.data: np.asarray(right[each.data]) for each, _ in lost if each.data in right}}
    why = _why(file, spread, [each for each, _ in lost], costs, sizes)
    words = f"{len(named)} op{'s' * (len(named) > 1)} in float, those that lose most of their own results"
    names = {_owner(file, other): name for name, other in beside.diff.pairs.items()}
    return CoarseOps(named, names, why, Calibrated(mixed, output, before, after, "exclude", words))


def _why(
    file: Model,
    spread: Model,
    lost: Sequence[_Product],
    costs: Sequence[RoundingCost],
    values: Mapping[str, np.ndarray],
) -> dict[str, str]:
    """Return what the costlier operand of products is like, by name of the node in the file, where that is known."""
    why: dict[str, str] = {}
    pairs = [pair for pair in quantizers(spread.graph) if pair.of_weight]
    for each in lost:
        own = {_owner(file, name) for name in (*each.rounding, *each.stored)}
        if each.data and not max((cost for cost in costs if cost.node.name in own), key=lambda x: x.error).of_weight:
            why[_owner(file, each.node.name)] = _sizes(values[each.data])
        elif words := next((starved_channels(spread, pair) for pair in pairs if pair.dequantize in each.stored), ""):
            why[_owner(file, each.node.name)] = words
    return why


def _rounding_alone(spec: EngineSpec, products: Sequence[_Product]) -> EngineSpec:
    """Return the evaluation of a file in which nothing but the operands of some products is rounded."""
    rounding, stored = (
        "+".join(name for each in products for name in names(each))
        for names in (operator.attrgetter("rounding"), operator.attrgetter("stored"))
    )
    return spec.with_options({**spec.options, "but": rounding, "draw": "1", "at": stored})


def _lost(node: Node, right: np.ndarray, found: np.ndarray) -> float:
    """Return the relative error of an op's usual channel: large ones hide those of all others in that of the whole."""
    if right.ndim < 2 or right.shape != found.shape:
        return difference(right, found)
    axis = 1 if "Conv" in node.op_type else -1
    rows, errors = (
        np.square(np.moveaxis(each, axis, 0).reshape(right.shape[axis], -1), dtype=np.float64).mean(axis=1)
        for each in (right, found - right)
    )
    return math.sqrt(float(np.median(errors[rows > 0.0] / rows[rows > 0.0]))) if rows.any() else 0.0


def _owner(file: Model, name: str) -> str:
    found = owner_of(file.graph, name)
    return found.name if found is not None else name


def _products(graph: Graph) -> Iterator[_Product]:
    for node in graph.nodes:
        if rounds_activations(node) and reads_integer_weights(graph, node):
            yield _Product(node, (node.name,), (node.name,), "")
        elif node.op_type in _INTEGER_PRODUCTS and not node.domain:
            maker = graph.producer(node.inputs[0])
            if maker is not None and rounds_activations(maker):
                yield _Product(node, (maker.name,), (node.name,), maker.inputs[0])
        elif node.op_type in MULTIPLIES and not node.domain:
            made = [graph.producer(name) for name in node.inputs[:2]]
            pairs = [each for each in made if each is not None and is_quantizer(each, "DequantizeLinear")]
            steps = [maker for each in pairs if (maker := graph.producer(each.inputs[0])) and is_quantizer(maker)]
            if len(pairs) == 2 and steps:
                stored = tuple(each.name for each in pairs if graph.producer(each.inputs[0]) is None)
                yield _Product(node, tuple(each.name for each in steps), stored, steps[0].inputs[0])


def _in_float(beside: Correspondence, spread: Model, products: Sequence[_Product]) -> Model:
    """Return the file with products in float, by the network's weights where these are known."""
    chosen = {each.node.name for each in products}

    def only(write: Callable[[OperatorBody], Results]) -> Callable[[OperatorBody], Results]:
        def scaled(body: OperatorBody) -> Results:
            results = write(body)
            refuse_if(body.owner not in chosen)
            return results

        return scaled

    written = with_written(spread, {"Mul": only(scaled_product)}, runtime=())
    graph = written.graph
    left = {each.node.name for each in products} & {node.name for node in graph.nodes}
    operands = {name for node in left for name in graph.node(node).inputs[:2]}
    dequantized = {f"{owner}/" for owner in chosen - left}
    pairs = [
        pair
        for pair in quantizers(graph)
        if pair.result in operands or any(pair.dequantize.startswith(each) for each in dequantized)
    ]
    found = beside.weights()
    known = {pair.stored: found[pair.result] for pair in quantizers(beside.paired.graph) if pair.result in found}
    weights = {pair.result: known[pair.stored] for pair in pairs if pair.of_weight and pair.stored in known}
    return bypass(written, weights, relus=beside.relus, only={pair.dequantize for pair in pairs if not pair.of_weight})


def _sizes(values: np.ndarray) -> str:
    """Return how different the sizes are of values that share one scale, as a clause."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)].astype(np.float64))
    if not sizes.size:
        return ""
    usual, largest = float(np.median(sizes)), float(sizes.max())
    step = float(np.ptp(np.append(values[np.isfinite(values)], 0.0))) / 255
    vanish = float(np.mean(sizes < step / 2))
    return (
        f"values of {magnitude(largest)} share a range with others of {magnitude(usual)}, of which 8 bits make "
        f"{percent(vanish)} 0"
    )
