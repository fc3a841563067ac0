"""Writes pairs of quantizers into a float model, where a plan wants them, with scales from calibrated ranges.

Names are those of ONNX Runtime's quantizer, which users know.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.api import Model
from tensortriage.precision.sdk import DType, Names, initializer, prune_initializers, replace_output, require_opset
from tensortriage_quantize.pairs.engine_styles import EngineStyle
from tensortriage_quantize.pairs.pair_placement import PairPlan, PlannedPair, PlannedWeight

_OPSET, _FLOAT8_OPSET, _WIDE_OPSET = 13, 19, 21
"""Operator sets from which QuantizeLinear knows axes, float8, and 16 bits."""

_SEVEN_BITS = 64.0
"""Largest number of a weight in 7 bits: twice its product with 255 fits into int16."""

_SHARES = (0.995, 0.99, 0.98, 0.97, 0.96, 0.95, 0.93, 0.9, 0.87, 0.83)
"""Shares of the scale that holds a channel's largest weight of which the one with the least squared error is taken."""

_MOST_WEIGHED = 1 << 24
"""Numbers of a weight up to which that is done."""

_LARGEST_BIAS = 2.0**30
"""Where a bias in steps of the product's scale would be more, its channel's scale is made larger."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions:
    """Settings for the form of pairs.

    Attributes:
        activation: Type of activations.
        symmetric: Whether their zero points are 0.
        right: Type of second operands, symmetric.
        weight: Type of weights, symmetric.
        per_channel: Whether weights have a scale per output channel.
        float_weights: Whether weights stay float behind a pair, and biases as they are.
        seven_bits: Whether weights use 7 bits.
    """

    activation: DType
    symmetric: bool
    right: DType
    weight: DType
    per_channel: bool = True
    float_weights: bool = False
    seven_bits: bool = False

    @classmethod
    def of(cls, style: EngineStyle, **other: bool) -> "PairOptions":
        """Return the options of an engine's 8-bit style, and further ones."""
        return cls(
            activation=style.activation, symmetric=style.symmetric, right=style.right, weight=DType.INT8, **other
        )


def insert_pairs(
    model: Model, plan: PairPlan, ranges: Mapping[str, tuple[float, float]], options: PairOptions
) -> Model:
    """Return the model with pairs.

    Args:
        model: The float model; it is not changed.
        plan: Places of the pairs.
        ranges: Lowest and highest number of every value that gets a pair; one without is left float.
        options: How.

    Raises:
        ModelError: When the model's operator set cannot be raised as far as the types need it (``opset-too-old``).
    """
    kinds = (options.activation, options.right, options.weight)
    wide = _WIDE_OPSET if any(kind.bits == 16 for kind in kinds) else _OPSET
    raised = require_opset(model, _FLOAT8_OPSET if options.activation.is_float else wide)
    return _Inserting(raised, plan, ranges, options).done()


class _Inserting:
    """One insertion in progress."""

    def __init__(
        self, model: Model, plan: PairPlan, ranges: Mapping[str, tuple[float, float]], options: PairOptions
    ) -> None:
        self._whole = model.clone().ir
        self._graph, self._names = self._whole.graph, Names(self._whole.graph)
        self._plan, self._ranges, self._options = plan, ranges, options
        self._nodes = {node.name: node for node in self._graph}
        values = [*self._graph.inputs, *self._graph.initializers.values()]
        self._values = {v.name: v for v in (*values, *(out for node in self._graph for out in node.outputs))}
        self._scales: dict[str, np.ndarray] = {}

    def done(self) -> Model:
        """Return the model."""
        for pair in self._plan.pairs:
            if pair.like in self._ranges:
                self._activation(pair)
        for weight in self._plan.weights:
            self._weight(weight)
        prune_initializers(self._graph)
        return Model.from_ir(self._whole)

    def _activation(self, pair: PlannedPair) -> None:
        options, value = self._options, self._values[pair.value]
        dtype = options.right if pair.right else options.activation
        symmetric = options.symmetric or (pair.right and options.right is not options.activation)
        scale, zero = scale_of(*self._ranges[pair.like], dtype, symmetric=symmetric)
        if not pair.right:
            self._scales[pair.value] = scale
        readers = [
            (use.node, use.idx) for use in value.uses()
            if pair.readers is None or (use.node.name, use.idx) in pair.readers
        ]  # fmt: skip
        made = self._pair(value, scale, zero, axis=None, after=value.producer())
        for node, place in readers:
            if node.op_type != "QuantizeLinear":
                node.replace_input_with(place, made)
        if pair.readers is None and value.is_graph_output():
            name = value.name or ""
            value.name, made.name = self._names.fresh(f"exact::{name}"), name
            replace_output(self._graph, value, made)

    def _pair(
        self, value: ir.Value, scale: np.ndarray, zero: np.ndarray, *, axis: int | None, after: ir.Node | None
    ) -> ir.Value:
        """Insert a pair behind a value, and return its result."""
        name = value.name or ""
        numbers = [self._constant(f"{name}_scale", scale), self._constant(f"{name}_zero_point", zero)]
        there = self._node("QuantizeLinear", f"{name}_QuantizeLinear", [value, *numbers], axis)
        back = self._node("DequantizeLinear", f"{name}_DequantizeLinear", [there.outputs[0], *numbers], axis)
        back.outputs[0].type, back.outputs[0].shape = value.type, value.shape
        if after is None:
            first = next(iter(self._graph))
            self._graph.insert_before(first, [there, back])
        else:
            self._graph.insert_after(after, [there, back])
        return back.outputs[0]

    def _weight(self, planned: PlannedWeight) -> None:
        options, node = self._options, self._nodes[planned.node]
        value = self._values[planned.value]
        numbers = _constant_of(value)
        axis = planned.axis if options.per_channel and not options.weight.is_float else None
        scale = self._weight_scale(numbers, axis)
        activation = self._scales.get(planned.activation)
        bias = self._values[planned.bias] if planned.bias and not options.float_weights else None
        if bias is not None and activation is not None:
            offsets = _constant_of(bias)
            least = np.abs(offsets).astype(np.float64) / (activation * _LARGEST_BIAS)
            scale = np.maximum(scale, least if axis is not None else least.max(initial=0.0)).astype(np.float32)
        zero = np.zeros(scale.shape, options.weight.numpy)
        if options.float_weights:
            made = self._pair(value, scale, zero, axis=axis, after=value.producer())
            node.replace_input_with(planned.place, made)
            return
        stored = stored_numbers(numbers, scale, zero, axis=axis or 0)
        node.replace_input_with(planned.place, self._dequantized(value, stored, scale, zero, axis, node))
        if bias is not None and activation is not None:
            steps = (activation.astype(np.float64) * scale).astype(np.float32)
            whole = np.rint(offsets.astype(np.float64) / steps).astype(np.int32)
            none = np.zeros(steps.shape, np.int32)
            made = self._dequantized(bias, whole, steps, none, 0 if steps.ndim else None, node)
            self._nodes[planned.adds[0]].replace_input_with(planned.adds[1], made)

    def _weight_scale(self, numbers: np.ndarray, axis: int | None) -> np.ndarray:
        others = tuple(along for along in range(numbers.ndim) if along != axis) if axis is not None else None
        largest = np.abs(numbers).max(axis=others, initial=0.0).astype(np.float64)
        top = _SEVEN_BITS if self._options.seven_bits else _top(self._options.weight)
        scale = np.where(largest > 0.0, largest / top, 1.0)
        if self._options.weight.is_float or numbers.size > _MOST_WEIGHED:
            return np.asarray(scale, np.float32)
        shape = [-1 if along == axis else 1 for along in range(numbers.ndim)] if axis is not None else []
        wide = numbers.astype(np.float64)

        def lost(scales: np.ndarray) -> np.ndarray:
            steps = scales.reshape(shape)
            made = np.clip(np.rint(wide / steps), -top, top) * steps
            return np.asarray(np.square(made - wide).sum(axis=others))

        best, least = scale, lost(scale)
        for share in _SHARES:
            found = lost(share * scale)
            best, least = np.where(found < least, share * scale, best), np.minimum(found, least)
        return np.asarray(best, np.float32)

    def _dequantized(
        self,
        value: ir.Value,
        stored: np.ndarray,
        scale: np.ndarray,
        zero: np.ndarray,
        axis: int | None,
        reader: ir.Node,
    ) -> ir.Value:
        name = value.name or ""
        kept = self._constant(f"{name}_quantized", stored)
        numbers = [self._constant(f"{name}_scale", scale), self._constant(f"{name}_zero_point", zero)]
        back = self._node("DequantizeLinear", f"{name}_DequantizeLinear", [kept, *numbers], axis)
        back.outputs[0].type, back.outputs[0].shape = value.type, value.shape
        self._graph.insert_before(reader, [back])
        return back.outputs[0]

    def _node(self, op_type: str, name: str, inputs: list[ir.Value], axis: int | None) -> ir.Node:
        made = ir.node(op_type, inputs, attributes={} if axis is None else {"axis": axis}, name=self._names.fresh(name))
        made.outputs[0].name = self._names.fresh(f"{name}_Output")
        return made

    def _constant(self, name: str, array: np.ndarray) -> ir.Value:
        made = initializer(self._names.fresh(name), array)
        self._graph.register_initializer(made)
        return made


def scale_of(low: float, high: float, dtype: DType, *, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the scale and the zero point of a range, which is widened to hold 0: padding must be exact.

    Args:
        low: Lowest number of the range.
        high: Highest number of the range.
        dtype: Type of the quantized numbers.
        symmetric: Whether the zero point is 0; unsigned types then begin at 0.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric or dtype.is_float:
        scale = max(-low, high) / _top(dtype)
        return np.array(scale if scale > 0.0 else 1.0, np.float32), np.zeros((), dtype.numpy)
    info = np.iinfo(dtype.numpy)
    scale = (high - low) / (info.max - info.min)
    scale = scale if scale > 0.0 else 1.0
    zero = np.clip(np.rint(info.min - low / scale), info.min, info.max)
    return np.array(scale, np.float32), np.array(zero, dtype.numpy)


def _top(dtype: DType) -> float:
    return float(dtype.finfo.max) if dtype.is_float else float(np.iinfo(dtype.numpy).max)


def _constant_of(value: ir.Value) -> np.ndarray:
    tensor = value.const_value
    if tensor is None:
        maker = value.producer()
        assert maker is not None
        tensor = maker.attributes["value"].as_tensor()
    return np.asarray(tensor.numpy())


def stored_numbers(weight: np.ndarray, scale: np.ndarray, zero: np.ndarray, *, axis: int) -> np.ndarray:
    """Return a weight as numbers of its zero point's type, as QuantizeLinear defines it; ``axis`` is that of scales."""
    shape = [1] * weight.ndim
    if scale.size > 1:
        shape[axis] = -1
    scales, zeros = (part.astype(np.float64).reshape(shape) for part in (scale, zero))
    dtype = DType.from_numpy(zero.dtype)
    scaled = weight.astype(np.float64) / scales
    if dtype.is_float:
        top = float(dtype.finfo.max)
        return np.asarray(np.clip(scaled, -top, top).astype(np.float32).astype(zero.dtype))
    limits = np.iinfo(zero.dtype)
    return np.asarray(np.clip(np.rint(scaled) + zeros, limits.min, limits.max).astype(zero.dtype))
