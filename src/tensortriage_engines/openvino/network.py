"""A file of OpenVINO written as an ONNX model, so that it can be judged as every other rewritten file.

Values and nodes keep the names that the source model gave them. Quantizers become pairs of QuantizeLinear and
DequantizeLinear, weights stay as they are stored, and inputs and outputs are those of the model that the file was made
of, in its layout: every remaining difference is a change.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensortriage.engines.sdk import ValueSpec
from tensortriage_engines.arrangement import Arrangement, Placed
from tensortriage_engines.openvino.intermediate import TYPES, Intermediate, Layer, Port, Shape
from tensortriage_engines.openvino.stored import StoredConstant

OPSET = 21
NARROW = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}


class Untranslatable(Exception):
    """A layer has no form in ONNX here."""

    def __init__(self, layer: Layer, why: str = "") -> None:
        super().__init__(f"{layer.kind} '{layer.name}'{f' {why}' if why else ''}")


def onnx_type(word: str) -> int:
    """Return ONNX's number of an element type."""
    return int(helper.np_dtype_to_tensor_dtype(TYPES[word]))


class OnnxGraph:
    """The ONNX graph that grows layer by layer.

    Args:
        file: The file to translate.
        known: Values of the source model, whose names are preferred.
        given: Names of inputs and outputs of the model that are inputs and outputs of the file, by their names there;
            None for one that is transposed or converted.
    """

    def __init__(
        self, file: Intermediate, known: frozenset[str], given: Sequence[tuple[str, tuple[int, int] | None]]
    ) -> None:
        self.file = file
        self.nodes: list[onnx.NodeProto] = []
        self.makers: dict[str, onnx.NodeProto] = {}
        self.initializers: list[onnx.TensorProto] = []
        self._known, self._names, self._node_names = known, {name for name, _ in given}, set[str]()
        self._given_names = {source: name for name, source in given if source is not None}
        self._values: dict[tuple[int, int], str | StoredConstant] = {}
        self._ports: dict[tuple[int, int], Port] = {}
        self._readers: dict[tuple[int, int], int] = {}
        for layer in file.layers:
            self._ports |= {(layer.number, number): port for number, port in layer.ports.items()}
            for source in layer.sources:
                self._readers[source] = self._readers.get(source, 0) + 1

    # -- what a layer reads -------------------------------------------------------------------------------------------

    def stored(self, layer: Layer, number: int) -> StoredConstant | None:
        """Return a constant operand, with the operations on it; None if it is not constant."""
        found = self._values[layer.sources[number]] if number < len(layer.sources) else None
        return found if isinstance(found, StoredConstant) else None

    def constant(self, layer: Layer, number: int) -> np.ndarray:
        """Return the numbers of an operand that ONNX wants to be known.

        Raises:
            Untranslatable: When they are not.
        """
        found = self.stored(layer, number)
        if found is None or found.scale is not None:
            return self._folded(layer, number)
        return found.array.astype(TYPES[found.dtype]) if found.dtype else found.array

    def _folded(self, layer: Layer, number: int) -> np.ndarray:
        """Return an operand that constants alone make."""
        made, fixed = [], {each.name: each for each in self.initializers}
        waiting, read = [value := self.value(layer, number)], set[str]()
        while waiting:
            name = waiting.pop()
            if name not in fixed and name not in self.makers:
                raise Untranslatable(layer, f"reads operand {number}, which is computed")
            if name not in read and name not in fixed:
                made.append(self.makers[name])
                waiting += [each for each in made[-1].input if each]
            read.add(name)
        nodes = [node for node in self.nodes if any(node is each for each in made)]
        own = [fixed[name] for name in sorted(read) if name in fixed]
        graph = helper.make_graph(nodes, "constant", [], [helper.make_empty_tensor_value_info(value)], own)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        found: Any = ReferenceEvaluator(model).run(None, {})
        return np.asarray(found[0])

    def value(self, layer: Layer, number: int) -> str:
        """Return the name of an operand."""
        return self.named(layer.sources[number])

    def named(self, source: tuple[int, int]) -> str:
        """Return the name of a value; a constant is written the first time."""
        found = self._values[source]
        if isinstance(found, StoredConstant):
            found = self._values[source] = self.written(found, self.fresh(found.name))
        return found

    def shape(self, layer: Layer, number: int = 0) -> Shape:
        """Return the shape of an operand."""
        return self._ports[layer.sources[number]].shape

    def dtype(self, layer: Layer, number: int = 0) -> str:
        """Return OpenVINO's word for the type of an operand."""
        return self._ports[layer.sources[number]].dtype

    def read_once(self, layer: Layer, number: int) -> bool:
        """Return whether nothing else reads an operand."""
        return self._readers[layer.sources[number]] == 1

    # -- what it writes -----------------------------------------------------------------------------------------------

    def keep(self, layer: Layer, stored: StoredConstant) -> None:
        """Make a constant the result of a layer."""
        self._values[layer.number, min(layer.ports)] = stored

    def give(self, layer: Layer, values: Sequence[str]) -> None:
        """Make values the results of a layer."""
        self._values |= {(layer.number, port): name for port, name in zip(sorted(layer.ports), values, strict=False)}

    def results(self, layer: Layer) -> list[str]:
        """Return names for the results of a layer: the source model's where it has them."""
        found = []
        for number, port in sorted(layer.ports.items()):
            if name := self._given_names.get((layer.number, number)):
                found.append(name)
                continue
            own = layer.name if len(layer.ports) == 1 else f"{layer.name}.{number}"
            names = [name for name in port.names if name in self._known and name not in self._names]
            found.append(self.fresh((names or list(port.names) or [own])[0]))
        return found

    def fresh(self, name: str) -> str:
        """Return a name that no value has yet."""
        return _free(name, self._names)

    def node(self, kind: str, name: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node."""
        own = _free(name, self._node_names)
        made = helper.make_node(kind, list(inputs), list(outputs), own, **attributes)
        self.nodes.append(made)
        self.makers |= dict.fromkeys(outputs, made)

    def one(self, layer: Layer, kind: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Add the node that a layer is."""
        outputs = self.results(layer)
        self.node(kind, layer.name, inputs, outputs, **attributes)
        self.give(layer, outputs)

    def joined(self, layer: Layer, node: onnx.NodeProto, operand: str) -> None:
        """Make a layer a further operand of the node before it, which then has the layer's name and result."""
        (result,) = self.results(layer)
        self.nodes.append(self.nodes.pop(self.nodes.index(node)))  # behind what makes the operand
        node.input.append(operand)
        node.output[0] = result
        self.makers[result] = node
        self._node_names.discard(node.name)
        node.name = layer.name
        self._node_names.add(node.name)
        self.give(layer, [result])

    def between(self, layer: Layer, kind: str, inputs: Sequence[str], part: str = "", **attributes: Any) -> str:
        """Add one of several nodes that a layer is, and return its result."""
        name = f"{layer.name}/{part or kind}"
        made = self.fresh(name)
        self.node(kind, name, inputs, [made], **attributes)
        return made

    def fixed(self, name: str, array: np.ndarray) -> str:
        """Add a constant, and return its name."""
        own = self.fresh(name)
        kind = NARROW.get(str(array.dtype))
        if kind is not None:
            plain = array.astype(np.int8 if "u" not in str(array.dtype) else np.uint8)
            self.initializers.append(helper.make_tensor(own, kind, array.shape, plain.reshape(-1)))
        else:
            self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), own))
        return own

    def numbers(self, layer: Layer, what: str, values: Sequence[int]) -> str:
        """Add a constant list of whole numbers."""
        return self.fixed(f"{layer.name}/{what}", np.asarray(values, np.int64))

    def written(self, stored: StoredConstant, name: str) -> str:
        """Write a constant and the operations on it; return the name of the result."""
        if stored.scale is not None:
            return self._dequantized(stored, name)
        if not stored.dtype or TYPES[stored.dtype] == stored.array.dtype:
            array = stored.array
            if str(array.dtype) in NARROW:
                array = array.astype(np.int8)
            self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
            return name
        if stored.array.dtype.kind == "b" or stored.whole:
            self.initializers.append(numpy_helper.from_array(stored.array.astype(TYPES[stored.dtype]), name))
            return name
        kept = self.fixed(f"{name}/stored", stored.array)
        self.node("Cast", name, [kept], [name], to=onnx_type(stored.dtype))
        return name

    def _dequantized(self, stored: StoredConstant, name: str) -> str:
        """Write integers that represent real numbers."""
        assert stored.scale is not None, "only for quantized numbers"
        block, zero = stored.block(), stored.zero
        real = TYPES[stored.dtype]
        fits = zero is None or (np.array_equal(zero, np.rint(zero)) and _fits(zero, stored.array.dtype))
        if block is None or not fits or not stored.whole:
            moved = stored.array.astype(np.float64) - (0 if zero is None else zero.astype(np.float64))
            exact = (moved * stored.scale.astype(np.float64)).astype(real)
            self.initializers.append(numpy_helper.from_array(exact, name))
            return name
        axis, size = block
        shape = stored.scale.shape if size else (() if axis is None else (-1,))
        scale = stored.scale.astype(np.float32).reshape(shape)
        inputs = [self.fixed(f"{name}/stored", stored.array), self.fixed(f"{name}/scale", scale)]
        if zero is not None:
            every = np.broadcast_to(zero.astype(np.int64), stored.scale.shape).reshape(shape)
            inputs.append(self.fixed(f"{name}/zero_point", every.astype(stored.array.dtype)))
        attributes = {} if axis is None else {"axis": axis, **({"block_size": size} if size else {})}
        made = name if real == np.float32 else self.fresh(f"{name}/wide")
        self.node("DequantizeLinear", name, inputs, [made], **attributes)
        if made != name:
            self.node("Cast", f"{name}/Cast", [made], [name], to=onnx_type(stored.dtype))
        return name

    # -- the whole ----------------------------------------------------------------------------------------------------

    def model(self, way: Arrangement, ends: Mapping[str, tuple[int, int]]) -> onnx.ModelProto:
        """Return the model, with the file's interface in terms of its source model.

        Args:
            way: How inputs and outputs of the file are the model's.
            ends: By the file's names of outputs, their values.
        """
        for each in way.outputs:
            self._given(each, ends[each.held.name])
        inputs = [_info(each.spec, _open(each)) for each in way.inputs]
        outputs = [_info(each.spec, _open(each)) for each in way.outputs]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.initializers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        helper.set_model_props(made, {key: value for key, value in self.file.made.items() if key.startswith("nncf/")})
        return made

    def fed(self, layer: Layer, each: Placed) -> None:
        """Make a Parameter of an input of the model."""
        value, word = each.spec.name, layer.ports[0].dtype
        if each.moved and each.axes is not None:
            made = self.fresh(f"{layer.name}/laid_out")
            self.node("Transpose", made, [value], [made], perm=list(each.axes))
            value = made
        if each.spec.dtype is not None and onnx_type(word) != each.spec.dtype.value:
            made = self.fresh(f"{layer.name}/converted")
            self.node("Cast", made, [value], [made], to=onnx_type(word))
            value = made
        self.give(layer, [value])

    def _given(self, each: Placed, source: tuple[int, int]) -> None:
        """Write an output of the model."""
        name, value, word = each.spec.name, self.named(source), self._ports[source].dtype
        if each.moved and each.axes is not None:
            made = self.fresh(f"{name}/laid_out")
            self.node("Transpose", made, [value], [made], perm=[int(axis) for axis in np.argsort(each.axes)])
            value = made
        wanted = each.spec.dtype.value if each.spec.dtype else onnx_type(word)
        if wanted != onnx_type(word):
            self.node("Cast", f"{name}/converted", [value], [name], to=wanted)
        elif value != name:
            self.node("Identity", f"{name}/output", [value], [name])


def _info(spec: ValueSpec, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(spec.name, spec.dtype.value if spec.dtype else TensorProto.FLOAT, shape)


def _open(each: Placed) -> list[int | str | None] | None:
    """Return the shape of an input or output of the model, as far as it or the file fixes it."""
    spec, held = each.spec.shape, each.held.shape
    if spec is None or held is None or each.axes is None or len(held) != len(spec):
        shape = held if spec is None else spec
        return None if shape is None else list(shape)
    back = [held[place] for place in np.argsort(each.axes)]
    return [own if isinstance(own, int) or size is None else size for own, size in zip(spec, back, strict=True)]


def integers(dtype: np.dtype | type) -> Any:
    """Return the range of a type of integers, as `numpy.iinfo`; of 4 bits as well."""
    info: Any = ml_dtypes.iinfo
    return info(dtype)


def _fits(zero: np.ndarray, dtype: np.dtype) -> bool:
    bounds = integers(dtype)
    return bool((zero >= bounds.min).all() and (zero <= bounds.max).all())


def _free(name: str, taken: set[str]) -> str:
    """Return a free name, which is taken from then on."""
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found
