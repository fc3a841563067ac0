"""One mistake in a rewritten file: what tools, scripts and people get wrong, each a function that changes the model.

A mistake returns where it is (`Place`), or None when the file has no place for it. Which node or weight is taken
a random generator decides, which the name of the case starts: the same case is always the same file.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

OTHER_ZERO = "another_zero_point"
"""Name of a zero point that was put in."""

SUFFIXES = ("_quantized", "_DequantizeLinear_Output", "_Q4", "_Q8", "_Q4G32", "_transposed")
_FLOATS = ("Conv", "MatMul", "Gemm", "Attention", "FusedConv", "FusedGemm", "FusedMatMul", "LSTM", "GRU")
_WEIGHTS = {"QLinearConv": (3, 4, 5), "QLinearMatMul": (3, 4, 5), "QGemm": (3, 4, 5), "MatMulNBits": (1, 2, 3)}
"""Inputs that are weight, scale and zero point."""
_INTEGERS = {"MatMulInteger": 1, "ConvInteger": 1, "DynamicQuantizeLSTM": 1}
"""Inputs that are weights, whose scale and zero point are found by their names."""
_BIASES = {"Conv": 2, "Gemm": 2, "FusedConv": 2, "FusedGemm": 2, "QLinearConv": 8, "QGemm": 6, "Attention": 2,
           "BiasGelu": 1, "SkipLayerNormalization": 4, "MatMulNBits": 5}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a mistake is.

    Attributes:
        nodes: Names in the changed file: the node that is wrong, or reads what is wrong.
        weights: Names of the constants that are wrong.
    """

    nodes: tuple[str, ...]
    weights: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Weight:
    """A weight in a file.

    Attributes:
        reader: The node that multiplies by it.
        nodes: Names of that and of the nodes between.
        name: Of the initializer.
        scale: Likewise; empty where there is none.
        zero: Likewise.
    """

    reader: onnx.NodeProto
    nodes: tuple[str, ...]
    name: str
    scale: str = ""
    zero: str = ""


class File:
    """A model that a mistake is made in.

    Args:
        model: It; changed in place.
        twin: What the same tool made of the network with other weights.
        random: What chooses.
    """

    def __init__(self, model: onnx.ModelProto, twin: onnx.ModelProto | None, random: np.random.Generator) -> None:
        self.model, self.graph, self.random = model, model.graph, random
        self.tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in model.graph.node:  # some tools keep weights in Constant nodes
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.tensors[node.output[0]] = node.attribute[0].t
        self.twin = {tensor.name: tensor for tensor in twin.graph.initializer} if twin is not None else {}

    def array(self, name: str) -> np.ndarray:
        """Return a constant."""
        return numpy_helper.to_array(self.tensors[name]).copy()

    def put(self, name: str, array: np.ndarray) -> None:
        """Replace a constant by one of any type and shape."""
        self.tensors[name].CopyFrom(numpy_helper.from_array(np.asarray(array, order="C"), name))

    def change(self, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change the numbers of a constant, whose type stays: integers are rounded and saturate."""
        before = self.array(name)
        after = change(before.astype(np.float64) if before.dtype.kind in "iu" else before)
        if before.dtype.kind in "iu":
            least, most = np.iinfo(before.dtype).min, np.iinfo(before.dtype).max
            after = np.clip(np.rint(after), least, most)
        self.put(name, after.astype(before.dtype))

    def readers(self, name: str) -> list[onnx.NodeProto]:
        """Return the nodes that read a value."""
        return [node for node in self.graph.node if name in node.input]

    def chosen(self, found: list) -> list:  # type: ignore[type-arg] # of anything
        """Return the same in random order."""
        return [found[index] for index in self.random.permutation(len(found))]

    def weights(self) -> list[Weight]:
        """Return the weights in random order."""
        return self.chosen([*self._weights()])

    def _weights(self) -> Iterator[Weight]:
        for node in self.graph.node:
            if node.op_type == "DequantizeLinear" and self._large(node.input[0]):
                readers, between = self.readers(node.output[0]), [node.name]
                while readers and readers[0].op_type in ("Transpose", "Mul", "Cast"):
                    between.append(readers[0].name)
                    readers = self.readers(readers[0].output[0])
                if len(readers) == 1 and readers[0].op_type in ("Conv", "MatMul", "Gemm"):
                    yield Weight(readers[0], (readers[0].name, *between), *_padded(node.input))
            elif node.op_type in _WEIGHTS and node.input[_WEIGHTS[node.op_type][0]] in self.tensors:
                places = (node.input[i] if i < len(node.input) else "" for i in _WEIGHTS[node.op_type])
                yield Weight(node, (node.name,), *places)
            elif node.op_type in _INTEGERS and node.input[1] in self.tensors:
                stem = node.input[1].removesuffix("_quantized")
                named = [f"{stem}{end}" if f"{stem}{end}" in self.tensors else "" for end in ("_scale", "_zero_point")]
                yield Weight(node, (node.name,), node.input[1], *named)
            elif node.op_type in _FLOATS and len(node.input) > 1 and self._large(node.input[1], "f"):
                yield Weight(node, (node.name,), node.input[1])

    def _large(self, name: str, kinds: str = "iuf") -> bool:
        return name in self.tensors and len(self.tensors[name].dims) > 1 and self.array(name).dtype.kind in kinds

    def of(self, *ops: str) -> list[onnx.NodeProto]:
        """Return nodes of some operators in random order."""
        return self.chosen([node for node in self.graph.node if node.op_type in ops])


def _padded(names: object) -> tuple[str, str, str]:
    weight, scale, zero = (*names, "")[:3]  # type: ignore[misc] # names of the inputs of a node
    return weight, scale, zero


Mistake = Callable[[File], Place | None]
"""Makes a mistake, and says where."""


def _on_weight(change: Callable[[File, Weight], bool]) -> Mistake:
    def made(file: File) -> Place | None:
        for weight in file.weights():
            if change(file, weight):
                return Place(weight.nodes, tuple(name for name in (weight.name, weight.scale, weight.zero) if name))
        return None

    return made


def _axis(file: File, weight: Weight) -> int:
    """Return the axis of output channels."""
    op, shape = weight.reader.op_type, file.array(weight.name).shape
    if op == "Gemm":
        return 0 if any(a.name == "transB" and a.i for a in weight.reader.attribute) else 1
    return (
        len(shape) - 1 if op in ("MatMul", "FusedMatMul", "Attention", "QLinearMatMul", "MatMulInteger", "QGemm") else 0
    )


def _scaled(file: File, weight: Weight) -> bool:
    if weight.reader.op_type == "MatMulNBits":
        return False
    whole = file.array(weight.name).dtype.kind in "iu"  # which would saturate if they grew
    zero = file.array(weight.zero).reshape(-1)[0].astype(float) if weight.zero in file.tensors else 0.0
    file.change(weight.name, lambda array: (array - zero) * (0.7 if whole else 1.2) + zero)
    return True


def _channel(file: File, weight: Weight) -> bool:
    if weight.reader.op_type == "MatMulNBits":
        return False
    axis = _axis(file, weight)
    array = np.moveaxis(file.array(weight.name).astype(np.float64), axis, 0)
    strongest = int(np.argmax(np.square(array - np.median(array)).reshape(len(array), -1).sum(1)))

    def change(given: np.ndarray) -> np.ndarray:
        moved = np.moveaxis(given, axis, 0)
        middle = np.median(moved[strongest]) if file.array(weight.name).dtype == np.uint8 else 0.0
        moved[strongest] = (moved[strongest] - middle) * (0.3 if weight.scale else 1.6) + middle
        return given

    file.change(weight.name, change)
    return True


def _rolled(file: File, weight: Weight) -> bool:
    file.change(
        weight.name,
        lambda array: np.roll(array, 1, 0 if weight.reader.op_type == "MatMulNBits" else _axis(file, weight)),
    )
    return True


def _another(file: File, weight: Weight) -> bool:
    names = [name for name in (weight.name, weight.scale, weight.zero) if name in file.tensors]
    if not all(name in file.twin and list(file.twin[name].dims) == list(file.tensors[name].dims) for name in names):
        return False
    for name in names:
        file.tensors[name].CopyFrom(file.twin[name])
    return True


def _scale(file: File, weight: Weight) -> bool:
    if weight.scale not in file.tensors:
        return False
    size = file.array(weight.scale).size

    def change(array: np.ndarray) -> np.ndarray:
        flat = array.reshape(-1)
        flat[: max(1, size // 4)] *= 1.3 if size == 1 else 1.6
        return array

    file.change(weight.scale, change)
    return True


def _zero(file: File, weight: Weight) -> bool:
    if weight.zero not in file.tensors or weight.reader.op_type == "MatMulNBits":
        return False
    file.change(weight.zero, lambda array: np.where(array > 60, array - 20, array + 20))
    return True


def _as_unsigned(file: File, weight: Weight) -> bool:
    """Read signed bytes as unsigned ones, as a loader does that knows one type of bytes."""
    if weight.zero not in file.tensors or file.array(weight.name).dtype != np.int8:
        return False
    for name in (weight.name, weight.zero):
        file.put(name, file.array(name).view(np.uint8))
    return True


def _wrong_axis(file: File, weight: Weight) -> bool:
    if weight.scale not in file.tensors or file.array(weight.scale).ndim != 1 or file.array(weight.scale).size < 2:
        return False
    shape = file.array(weight.name).shape
    node = next((node for node in file.readers(weight.name) if node.op_type == "DequantizeLinear"), None)
    if node is None or len(shape) < 2 or shape[0] != shape[1]:
        return False
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    kept = [a for a in node.attribute if a.name != "axis"]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("axis", 1 - axis % len(shape))])
    return True


def _nibbles(file: File, weight: Weight) -> bool:
    if weight.reader.op_type != "MatMulNBits" or not any(
        a.name == "bits" and a.i == 4 for a in weight.reader.attribute
    ):
        return False
    array = file.array(weight.name)
    file.put(weight.name, (array >> 4) | (array << 4))
    return True


def _biased(factor: float) -> Mistake:
    def made(file: File) -> Place | None:
        for node in file.of(*_BIASES):
            index = _BIASES[node.op_type]
            name = node.input[index] if len(node.input) > index else ""
            behind = next((n for n in file.graph.node if name and name in n.output), None)
            names = [node.name]
            if behind is not None and behind.op_type == "DequantizeLinear":
                names.append(behind.name)
                name = behind.input[0]
            if name in file.tensors and len(file.tensors[name].dims) == 1:
                file.change(name, lambda array: array * factor)
                return Place(tuple(names), (name,))
        for node in file.of("Add"):
            for name in node.input:
                if name in file.tensors and len(file.tensors[name].dims) == 1:
                    file.change(name, lambda array: array * factor)
                    return Place((node.name,), (name,))
        return None

    return made


def _pairs(file: File) -> list[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Return the quantizers of activations, each with what reads its integers."""
    found = []
    for node in file.of("QuantizeLinear"):
        readers = [reader for reader in file.readers(node.output[0]) if reader.op_type == "DequantizeLinear"]
        if node.input[0] not in file.tensors and len(readers) == 1:
            found.append((node, readers[0]))
    return found


def _zeros_differ(file: File) -> Place | None:
    for first, other in _pairs(file):
        if len(other.input) > 2 and file.array(other.input[2]).size == 1:
            array = file.array(other.input[2])
            shifted = array - array.dtype.type(40) if array > 60 else array + array.dtype.type(40)
            file.graph.initializer.append(numpy_helper.from_array(np.asarray(shifted, array.dtype), OTHER_ZERO))
            other.input[2] = OTHER_ZERO
            return Place((other.name, first.name), (OTHER_ZERO,))
    return None


def _ranged(factor: float) -> Mistake:
    """Multiply the scale of an activation wherever it is used: the range is that of another tensor."""

    def made(file: File) -> Place | None:
        steps = [node.input[1] for node, _ in _pairs(file)]
        for op, index in (("QLinearConv", 6), ("QLinearMatMul", 6), ("QGemm", 7), ("QLinearAdd", 6)):
            steps += [node.input[index] for node in file.of(op) if len(node.input) > index]
        for name in file.chosen(sorted(set(steps) & set(file.tensors))):
            users = [node.name for node in file.graph.node if name in node.input]
            file.change(name, lambda array: array * array.dtype.type(factor))
            return Place(tuple(users), (name,))
        return None

    return made


WEIGHTS: Mapping[str, Mistake] = {
    "weight-scaled": _on_weight(_scaled), "channel-scaled": _on_weight(_channel), "rows-rolled": _on_weight(_rolled),
    "another-checkpoint": _on_weight(_another), "scale-1.3": _on_weight(_scale), "zero-20": _on_weight(_zero),
    "s8-as-u8": _on_weight(_as_unsigned), "wrong-axis": _on_weight(_wrong_axis), "nibbles": _on_weight(_nibbles),
    "bias-dropped": _biased(0.0), "bias-doubled": _biased(2.0), "zeros-differ": _zeros_differ,
    "range-40": _ranged(40.0), "range-twentieth": _ranged(0.05),
}  # fmt: skip
"""Mistakes in constants."""

RANGES = ("range-40", "range-twentieth")
"""Those that only make rounding or cutting off worse: nothing but a calibration is wrong with the file."""
