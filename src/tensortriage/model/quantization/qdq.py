"""Pairs of QuantizeLinear and DequantizeLinear: which values a model quantizes, and how.

A pair passes a tensor through integers (or float8) and back; a DequantizeLinear of a constant does so for a weight,
whose first half was done when the model was made. The model without its pairs is the model that was quantized.
"""

import math
from collections.abc import Collection, Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.values.dtype import DType

QUANTIZING_OPS = frozenset(
    {
        "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul",
        "QLinearConv",
    }
)  # fmt: skip
"""Operators that work on quantized numbers."""

ROUNDING_OPS = frozenset(
    {
        "QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv", "QLinearAdd", "QLinearMul",
        "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool",
        "QLinearConcat", "QLinearWhere", "QLinearReduceMean", "QGemm", "DynamicQuantizeMatMul", "QAttention",
        "DynamicQuantizeLSTM", "QEmbedLayerNormalization",
    }
)  # fmt: skip
"""Operators that round activations to integers."""

OPS_OF_INTEGER_WEIGHTS = frozenset(
    {
        "DequantizeLinear", "QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger", "QGemm", "MatMulNBits",
        "GatherBlockQuantized", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention", "DynamicQuantizeLSTM",
        "QEmbedLayerNormalization", "MatMulBnb4",
    }
)  # fmt: skip
"""Operators that read weights stored in integers."""

_DOMAINS = ("", "ai.onnx", "com.microsoft")
"""Domains of quantizers: ONNX Runtime's quantizer writes 16-bit ones in its own domain below operator set 21."""


def is_quantizer(node: Node, *op_types: str) -> bool:
    """Return whether a node is a QuantizeLinear or DequantizeLinear, or one of the given variants.

    Args:
        node: The node.
        op_types: Which of both; each of them when left out.
    """
    return node.op_type in (op_types or ("QuantizeLinear", "DequantizeLinear")) and node.domain in _DOMAINS


def rounds_activations(node: Node) -> bool:
    """Return whether a node rounds computed values to integers."""
    return node.op_type in ROUNDING_OPS and node.domain in _DOMAINS


def reads_integer_weights(graph: Graph, node: Node) -> bool:
    """Return whether a node reads a weight, more than one number, that is stored in integers."""
    if node.op_type not in OPS_OF_INTEGER_WEIGHTS or node.domain not in _DOMAINS:
        return False
    stored = (graph.constants[name] for name in node.inputs if name in graph.constants)
    return any(spec.dtype is not None and not spec.dtype.is_float and math.prod(spec.sizes) > 1 for spec in stored)


def is_quantized(graph: Graph) -> bool:
    """Return whether any node of a graph rounds activations to integers, or reads weights stored in them."""
    return any(rounds_activations(node) or reads_integer_weights(graph, node) for node in graph.nodes)


@frozen_dataclass
class Quantizer:
    """One tensor that is quantized and dequantized.

    Attributes:
        quantize: Name of the QuantizeLinear; empty for a weight stored as integers.
        dequantize: Name of the DequantizeLinear.
        value: The floating-point value that is quantized; empty for a weight.
        stored: The quantized value: the result of the QuantizeLinear, or the constant.
        result: What the DequantizeLinear makes.
        scale: Name of the scale, a constant.
        zero_point: Name of the zero point, a constant; empty when omitted.
        axis: Axis of the scales where there are several.
        dtype: Type of the quantized numbers.
    """

    quantize: str
    dequantize: str
    value: str
    stored: str
    result: str
    scale: str
    zero_point: str
    axis: int
    dtype: DType

    @property
    def of_weight(self) -> bool:
        """Whether a weight is dequantized."""
        return not self.quantize


def quantizers(graph: Graph) -> tuple[Quantizer, ...]:
    """Return the pairs of a graph whose scales are constants, and its dequantized weights, in topological order.

    Blocked quantization (``block_size``) is left out.
    """
    found = (_pair(graph, node) for node in graph.nodes if is_quantizer(node, "DequantizeLinear"))
    return tuple(pair for pair in found if pair is not None)


def _pair(graph: Graph, node: Node) -> Quantizer | None:
    stored, scale, zero = (*node.inputs, "")[:3]
    if node.attributes.get("block_size") or scale not in graph.constants or (zero and zero not in graph.constants):
        return None
    axis = node.attributes.get("axis", 1)
    axis = axis if isinstance(axis, int) else 1
    if stored in graph.constants:
        dtype = graph.constants[stored].dtype
        return (
            None if dtype is None else Quantizer("", node.name, "", stored, node.outputs[0], scale, zero, axis, dtype)
        )
    maker = graph.producer(stored)
    if maker is None or not is_quantizer(maker, "QuantizeLinear") or maker.inputs[1] not in graph.constants:
        return None
    dtype = graph.constants[zero].dtype if zero else DType.UINT8
    if dtype is None:
        return None
    return Quantizer(maker.name, node.name, maker.inputs[0], stored, node.outputs[0], scale, zero, axis, dtype)


def dequantized(graph: Graph, pair: Quantizer) -> np.ndarray:
    """Return the real numbers of a weight stored as integers, by ONNX's definition of DequantizeLinear.

    Args:
        graph: The graph of the pair.
        pair: A pair with a constant stored value.

    Returns:
        An array of the shape of the stored one and the type of the scale.
    """
    stored, scale = graph.weight(pair.stored), graph.weight(pair.scale)
    zero = graph.weight(pair.zero_point) if pair.zero_point else np.zeros((), stored.dtype)
    zeros = _along_axis(zero.astype(np.float64), pair, stored.ndim)
    return np.asarray(((stored.astype(np.float64) - zeros) * steps(graph, pair, stored.ndim)).astype(scale.dtype))


def steps(graph: Graph, pair: Quantizer, rank: int) -> np.ndarray:
    """Return the scales of a pair, float64, ready to broadcast over a tensor of a rank."""
    return _along_axis(graph.weight(pair.scale).astype(np.float64), pair, rank)


def _along_axis(numbers: np.ndarray, pair: Quantizer, rank: int) -> np.ndarray:
    shape = [-1 if axis == pair.axis % rank else 1 for axis in range(rank)]
    return numbers.reshape(shape if numbers.size > 1 else ())


def bypass(
    model: Model,
    weights: Mapping[str, np.ndarray],
    *,
    relus: Collection[str] = (),
    only: Collection[str] | None = None,
) -> Model:
    """Return the model without its pairs, and with dequantized weights replaced.

    Args:
        model: The model; it is not changed.
        weights: Result of a `Quantizer` of a weight to the floating-point weight; the others stay as they are.
        relus: Quantized values whose pair becomes a Relu: a quantizer without negative numbers takes over the Relu
            before it, which quantizers of models then leave out.
        only: DequantizeLinear nodes of the pairs to leave out; None for all of them.

    Raises:
        DataError: When a weight has another element type than the result it replaces (``dtype-mismatch``).
    """
    pairs = {pair.dequantize: pair for pair in quantizers(model.graph) if not pair.of_weight}
    clone = (freeze(model, weights) if weights else model).clone()
    graph = clone.ir.graph
    made = (value for node in graph for value in node.outputs)
    values = {value.name: value for value in (*made, *graph.inputs, *graph.initializers.values())}
    for node in graph:
        pair = pairs.get(node.name or "")
        if pair is not None and (only is None or pair.dequantize in only):
            _skip(node, values[pair.value], "Relu" if pair.value in relus else "")
    return Model.from_ir(clone.ir)


def _skip(node: ir.Node, source: ir.Value, instead: str) -> None:
    """Make everything use a value instead of a node's result, or the result of another operator, where one is given.

    A graph output keeps its name through an Identity.
    """
    result = node.outputs[0]
    if result.is_graph_output() or instead:
        node.replace_input_with(0, source)
        node.domain, node.op_type = "", instead or "Identity"
        node.resize_inputs(1)
        node.attributes.clear()
    else:
        result.replace_all_uses_with(source)


def integer_biases(model: Model) -> Model | None:
    """Return a quantized model with biases that an integer kernel can add: whole multiples of scale times scale.

    The sums of an integer kernel are int32 in units of (scale of the data) x (scale of the weight); so a bias that the
    model stores in floating point is rounded to these units.

    Args:
        model: The model; it is not changed.

    Returns:
        None when no Gemm or Conv with dequantized data and weight has a floating-point constant as its bias.
    """
    graph = model.graph
    made = {pair.result: pair for pair in quantizers(graph)}
    rounded: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        if node.op_type not in ("Gemm", "Conv") or node.domain or len(node.inputs) < 3:
            continue
        data, weight, bias = made.get(node.inputs[0]), made.get(node.inputs[1]), node.inputs[2]
        if data is None or weight is None or bias not in graph.constants:
            continue
        numbers = graph.weight(bias)
        unit = graph.weight(data.scale).astype(np.float64) * graph.weight(weight.scale).astype(np.float64)
        if numbers.dtype == np.float32 and unit.size in (1, numbers.size) and (unit > 0.0).all():
            unit = unit.reshape(numbers.shape) if unit.size == numbers.size else unit.reshape(())
            rounded[bias] = (np.rint(numbers / unit) * unit).astype(np.float32)
    return freeze(model, rounded) if rounded else None


def are_symmetric(graph: Graph, pairs: Collection[Quantizer]) -> bool:
    """Whether the quantizers of a model have no zero points on purpose: several for signed values, all with 0."""
    signed = [pair for pair in pairs if not pair.of_weight and pair.dtype is DType.INT8]
    return len(signed) > 1 and not any(pair.zero_point and graph.weight(pair.zero_point).any() for pair in signed)


def uses_seven_bits(graph: Graph, pairs: Collection[Quantizer]) -> bool:
    """Whether the 8-bit weights of a model use 7 bits on purpose: several, and none goes further.

    ONNX Runtime's quantizers do so where it is asked for (``reduce_range``), for kernels that sum in int16: -64 to 64,
    or 0 to 128 of uint8.
    """
    stored = {pair.stored: pair for pair in pairs if pair.of_weight and pair.dtype in (DType.INT8, DType.UINT8)}
    weights = [(graph.weight(name), pair.dtype) for name, pair in stored.items()]
    several = sum(array.ndim > 1 for array, _ in weights) > 1
    return several and all(
        int(array.max(initial=0)) <= (64 if dtype is DType.INT8 else 128) and int(array.min(initial=0)) >= -64
        for array, dtype in weights
    )


def uses_half_range(graph: Graph, pair: Quantizer) -> bool:
    """Whether a stored int8 weight uses half of its range on purpose: every channel ends at 63 or 64.

    NNCF's overflow fix makes weights of the first layer, or of all, so that sums of two products fit into int16.
    """
    if not pair.of_weight or pair.dtype is not DType.INT8:
        return False
    stored = np.abs(graph.weight(pair.stored).astype(np.int16))
    several = graph.weight(pair.scale).size > 1 and stored.ndim > 1
    axis = pair.axis % stored.ndim if stored.ndim else 0
    others = tuple(along for along in range(stored.ndim) if along != axis) if several else None
    ends = np.atleast_1d(stored.max(axis=others, initial=0))
    return bool(ends.max(initial=0) > 0) and bool(np.isin(ends[ends > 0], (63, 64)).all())


_SIGNED = frozenset(
    {"Add", "BatchNormalization", "Conv", "ConvTranspose", "Gemm", "InstanceNormalization", "MatMul", "Sum"}
)
"""Operators with results of both signs, which networks follow with activations."""


def may_rectify(graph: Graph, pair: Quantizer) -> bool:
    """Whether a pair may be the ReLU of its value: nothing below 0 can be represented.

    Quantizers of models drop a Relu or Clip behind an operator when the pair behind it begins at 0: the zero point is
    the lowest integer then. Whether one was there only the numbers tell, see `quantizer_fit.activations`.
    """
    maker = graph.producer(pair.value) if pair.value else None
    if maker is None or maker.op_type not in _SIGNED or pair.dtype.is_float or not pair.dtype.is_integer:
        return False
    zero = graph.weight(pair.zero_point) if pair.zero_point else np.zeros((), pair.dtype.numpy)
    return bool((zero == np.iinfo(pair.dtype.numpy).min).all())


MULTIPLIES = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators that have kernels for quantized operands everywhere."""


def multiplications(graph: Graph) -> dict[str, tuple[Quantizer, Quantizer]]:
    """Return the pairs behind data and weights of every node that multiplies values quantized to integers.

    Only weights that are constants in symmetric int8 count.
    """
    made = {pair.result: pair for pair in quantizers(graph)}
    found = {}
    for node in graph.nodes:
        if node.domain or node.op_type not in MULTIPLIES or not {*node.inputs[:2]} <= made.keys():
            continue
        data, weight = (made[name] for name in node.inputs[:2])
        constant = weight.of_weight or weight.value in graph.constants
        plain = not weight.zero_point or not graph.weight(weight.zero_point).any()
        if constant and plain and weight.dtype is DType.INT8 and data.dtype in (DType.INT8, DType.UINT8):
            found[node.name] = (data, weight)
    return found


def seven_bit_weights(model: Model) -> Model | None:
    """Return a quantized model whose int8 weights use 7 of their bits: half the steps, each twice as long.

    Biases in int32 are counted in steps of the products, and kernels look at no scale of theirs: they follow.

    Args:
        model: The model; it is not changed.

    Returns:
        None when nothing multiplies such weights, or one has a scale that others share.
    """
    graph = model.graph
    values: dict[str, np.ndarray] = {}
    biases = {pair.result: pair for pair in quantizers(graph) if pair.of_weight and pair.dtype is DType.INT32}
    for name, (_, weight) in multiplications(graph).items():
        readers = {node.name for node in graph.consumers(weight.scale)}
        if not readers <= {weight.quantize, weight.dequantize}:
            return None
        values[weight.scale] = (graph.weight(weight.scale) * 2.0).astype(graph.weight(weight.scale).dtype)
        if weight.of_weight:
            values[weight.stored] = np.rint(graph.weight(weight.stored) / 2.0).astype(np.int8)
        adds = (user for user in graph.consumers(graph.node(name).outputs[0]) if user.op_type == "Add")
        users = (graph.node(name), *adds)
        for bias in (biases[value] for user in users for value in user.inputs if value in biases):
            values[bias.scale] = (graph.weight(bias.scale) * 2.0).astype(graph.weight(bias.scale).dtype)
            values[bias.stored] = np.rint(graph.weight(bias.stored) / 2.0).astype(np.int32)
    return freeze(model, values) if values else None
