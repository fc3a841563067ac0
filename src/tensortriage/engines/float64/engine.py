"""The engine ``float64``: the model in float64, as close to its exact answer as plain numpy gets.

Whatever real floating-point type the model declares, weights, constants, casts and results are float64; integers,
booleans and the narrow formats (float8, int4, ...) behind quantizers keep the model's types. So outputs that the model
declares as float16, bfloat16 or float32 come back as float64: rounding them would lose the reference's digits. Options
reduce that: results rounded to the types of the model, sums and functions as hardware computes them
(`tensortriage.engines.float64.arithmetic`).

Most operators have kernels of our own (`tensortriage.engines.float64.kernels`); for rare ones the reference
implementations of the onnx package serve, but only those that were found to keep float64: some drop to float32 inside
(GridSample, AffineGrid, window functions, LinearAttention), others ignore the meaning of older operator sets or are
slow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import onnx_ir as ir

from tensortriage.engines.base import Availability, Limits, Plan, Region, Session
from tensortriage.engines.capabilities import CompilesModels, ComputesByRule, ReportsPrecision, StreamsResults
from tensortriage.engines.feed_checks import build_failed, checked_feed, closed, run_failed
from tensortriage.engines.float64.arithmetic import EXACT, OPTIONS, Arithmetic, read_arithmetic
from tensortriage.engines.float64.interpreter import CONTROL_FLOW, Fetch, NodeFailed, Program, ProgramStep, run
from tensortriage.engines.float64.kernels import Call, Kernel, kernel_for
from tensortriage.engines.float64.kernels.casting import WIDE, to_float64
from tensortriage.engines.float64.stored_numbers import StoredNumbers
from tensortriage.engines.float64.typed_steps import ExactSteps, TypedSteps
from tensortriage.engines.options import read_options
from tensortriage.errors import BuildFailed, ModelError
from tensortriage.model.io.lazy_weights import MappedTensor
from tensortriage.model.ir.specs import value_spec
from tensortriage.model.model import Model
from tensortriage.model.transforms.folded_norms import with_folded_norms
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

NAME = "float64"
OLDEST_OPSET = 7
BORROWED = frozenset(
    {
        "Attention", "Col2Im", "ConcatFromSequence", "DeformConv", "DFT", "MaxUnpool", "NegativeLogLikelihoodLoss",
        "NonMaxSuppression", "Optional", "OptionalGetElement", "OptionalHasElement", "RegexFullMatch", "RoiAlign",
        "RotaryEmbedding", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
        "SequenceLength", "SoftmaxCrossEntropyLoss", "SplitToSequence", "STFT", "StringConcat", "StringNormalizer",
        "StringSplit", "SwiGLU",
    }
)  # fmt: skip
"""Operators run by the onnx package's reference implementation, all seen to keep float64."""
_MEANT_BEFORE = {"RoiAlign": (16, {"coordinate_transformation_mode": "output_half_pixel"})}
"""Attributes that a borrowed implementation needs in operator sets before the one that defines them."""
_NARROWING = frozenset({"softmax_precision"})
"""Attributes that would make a borrowed implementation round to a narrower type."""
_STANDARD = ("", "ai.onnx")
_DEEPEST_CALL = 64


class Float64Engine(ReportsPrecision, ComputesByRule, CompilesModels, StreamsResults):
    """The engine ``float64``, in this process."""

    name: ClassVar[str] = NAME
    options: ClassVar[Mapping[str, str]] = {
        **OPTIONS,
        "kernels": "whose operators compute: own (default), or onnx for those of the onnx package, independent",
        "norms": "folded: BatchNormalizations are folded into the convolutions before them, in the type of the weights",
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def availability(self) -> Availability:
        """Return that the engine is available: it needs only TensorTriage's own dependencies."""
        return Availability(usable=True, version=np.__version__, device="CPU")

    def precision(self, options: Mapping[str, str]) -> str:
        """Return ``fp64``, the format that results are rounded to, or ``fp32`` for the types of the model."""
        return read_arithmetic(read_options(options, self.options)).precision.value

    def compile(self, model: Path, options: Mapping[str, str]) -> "Float64Session":
        """Prepare the model.

        Raises:
            UsageError: For an unknown option or value.
            BuildFailed: When the file is no model, uses an operator that has no float64 arithmetic here, an operator
                set before 7, or inputs or outputs that are no tensors; with an arithmetic, when the type of a value
                is not known.
        """
        return self._prepared(lambda: Model.load(model), options)

    def compile_model(self, model: Model, options: Mapping[str, str]) -> "Float64Session":
        """Prepare a loaded model; errors as with `compile`."""
        return self._prepared(lambda: model, options)

    def stream_session(self, session: Session, feed: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """Run a session; see `Float64Session.stream`."""
        assert isinstance(session, Float64Session), "it has no others"
        return session.stream(feed)

    def _prepared(self, model: Callable[[], Model], options: Mapping[str, str]) -> "Float64Session":
        given = read_options(options, self.options)
        arithmetic = read_arithmetic(given)
        borrow = given.choice("kernels", {"own": False, "onnx": True}, False)
        folds = given.choice("norms", {"apart": False, "folded": True}, False)
        try:
            loaded = with_folded_norms(model()) if folds else model()
            return Float64Session(loaded, arithmetic, borrow=borrow)
        except ModelError as error:
            raise build_failed(NAME, error.message, cure=error.cure) from error


class Float64Session:
    """A model as a program of float64 kernels.

    Args:
        model: The model.
        arithmetic: The policy of rounding.
        borrow: Whether the onnx package's implementations compute, as a second opinion, instead of our own kernels.

    Raises:
        BuildFailed: When it cannot be one.
        ModelError: When the arithmetic rounds and the type of a value is not known.
    """

    def __init__(self, model: Model, arithmetic: Arithmetic = EXACT, *, borrow: bool = False) -> None:
        self.inputs: Sequence[ValueSpec] = model.inputs
        declared = model.outputs if arithmetic.rounds else [_answered(spec) for spec in model.outputs]
        self.outputs: Sequence[ValueSpec] = tuple(declared)
        for value in (*model.ir.graph.inputs, *model.ir.graph.outputs):
            if not isinstance(value.type, ir.TensorType | None):
                raise BuildFailed(
                    f"'{value.name}' is {value.type}, not a tensor",
                    slug="value-not-a-tensor",
                    cure="cut the model before it, e.g. with triage surgeon extract",
                )
        steps = ExactSteps(model, arithmetic) if arithmetic.is_exact else TypedSteps(model, arithmetic)
        self._finish = {value.name: steps.output(value) for value in steps.model.graph.outputs}
        self._typed = {spec.name: spec.dtype.numpy for spec in declared if arithmetic.rounds and spec.dtype in WIDE}
        self._program: Program | None = _Builder(steps, borrow=borrow).main()

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once.

        Args:
            feed: One array per input, in its declared type and shape.

        Returns:
            One array per output; float64 for every real floating-point output unless results are rounded.

        Raises:
            DataError: When the feed does not fit the inputs.
            RunFailed: When an operator cannot be computed, or the session is closed.
            EngineOutOfMemory: When an allocation fails.
        """
        found = dict(self.stream(feed))
        return {spec.name: np.asarray(found[spec.name], order="C") for spec in self.outputs}

    def stream(self, feed: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(output name, array)`` in execution order, so that no more than one output need be held at a time.

        Arrays may be views with transposed axes, and must not be written to. Closing the session, by whatever thread,
        ends it at the next operator.

        Raises:
            As `run`.
        """
        program = self._opened()
        fed = checked_feed(feed, self.inputs)
        read = {name: to_float64(array) for name, array in fed.items()}
        try:
            for name, value in run(program, read, self._opened):
                yield name, self._answer(name, _owned(value, fed))
        except NodeFailed as error:
            raise run_failed(NAME, error) from error

    def _opened(self) -> Program:
        if self._program is None:
            raise closed(NAME)
        return self._program

    def _answer(self, name: str, value: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            finish = self._finish.get(name)
            value = value if finish is None else finish(value)
            return value.astype(self._typed[name], copy=False) if name in self._typed else to_float64(value)

    def plan(self) -> Plan | None:
        """Return one region per node that outputs need, in execution order; computed in float64.

        Raises:
            RunFailed: When the session is closed (``session-closed``).
        """
        steps = self._opened().steps
        return Plan(tuple(Region(s.node, (s.node,), s.op_type, "float64", "numpy") for s in steps))

    def close(self) -> None:
        """Release the weights."""
        self._program = None


def _answered(spec: ValueSpec) -> ValueSpec:
    return ValueSpec(spec.name, DType.DOUBLE if spec.dtype in WIDE else spec.dtype, spec.shape)


def _owned(value: Any, fed: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a result as an array that shares no memory with the feed."""
    if not isinstance(value, np.ndarray):
        raise NodeFailed("an output is a sequence or an absent optional, not a tensor")
    if any(np.may_share_memory(value, array) for array in fed.values()):
        return value.copy()
    return value


class _Builder:
    """From onnx_ir graphs to programs."""

    def __init__(self, steps: ExactSteps | TypedSteps, *, borrow: bool = False) -> None:
        self._model = steps.model
        self._steps = steps
        self._borrow = borrow

    def main(self) -> Program:
        return self._program(self._model.graph, dict(self._model.opset_imports), {}, 0)

    def _program(self, graph: ir.Graph, opsets: Mapping[str, int], given: Mapping[str, ir.Attr], depth: int) -> Program:
        stored = self._steps.arithmetic.stored
        weights = {name: _fetch(name, value.const_value, stored) for name, value in graph.initializers.items()}
        return Program.of(
            [value.name or "" for value in graph.inputs if value.name not in weights],
            [value.name or "" for value in graph.outputs],
            weights,
            [self._step(node, opsets, given, depth) for node in graph],
            [_empty(value) for value in graph.outputs],
        )

    def _step(self, node: ir.Node, opsets: Mapping[str, int], given: Mapping[str, ir.Attr], depth: int) -> ProgramStep:
        attributes = {name: given.get(attr.ref_attr_name or "") if attr.is_ref() else attr for name, attr in
                      node.attributes.items()}  # fmt: skip
        present = {name: attr for name, attr in attributes.items() if attr is not None}
        bodies = {
            name: self._program(attr.as_graph(), opsets, given, depth)
            for name, attr in present.items()
            if attr.type == ir.AttributeType.GRAPH
        }
        function = self._model.functions.get(node.op_identifier())
        kernel: Kernel | None = None
        if function is not None:
            bodies = {"": self._called(function, node, present, depth)}
        elif node.domain not in _STANDARD or node.op_type not in CONTROL_FLOW:
            kernel = _kernel(node, opsets, present, borrow=self._borrow)
        version = opsets.get("", 0) or opsets.get("ai.onnx", 0)
        if node.op_type == "Scan" and version < 9:
            raise build_failed(NAME, f"node '{node.name}': Scan of operator set 8", cure="convert to operator set 9")
        if version < OLDEST_OPSET and node.domain in _STANDARD and function is None:
            raise build_failed(
                NAME, f"it uses operator set {version}", cure="convert the model to operator set 13 or later"
            )
        rounded = self._steps.step(node)
        return ProgramStep(
            node=node.name or node.op_type,
            op_type=node.op_type,
            version=version,
            inputs=tuple("" if value is None else value.name or "" for value in node.inputs),
            outputs=tuple(value.name or "" for value in node.outputs),
            attributes={name: _plain(attr) for name, attr in present.items() if attr.type != ir.AttributeType.GRAPH},
            kernel=kernel,
            bodies=bodies,
            arithmetic=rounded.arithmetic,
            operands=rounded.operands,
            results=rounded.results,
        )

    def _called(self, function: ir.Function, node: ir.Node, present: Mapping[str, ir.Attr], depth: int) -> Program:
        if depth >= _DEEPEST_CALL:
            raise build_failed(NAME, f"function {function.name} calls itself")
        defaults = {name: attr for name, attr in function.attributes.items() if attr.value is not None}
        opsets = {**self._model.opset_imports, **function.opset_imports}
        return self._program(function.graph, opsets, {**defaults, **present}, depth + 1)


def _fetch(name: str, tensor: Any, stored: StoredNumbers) -> Fetch:
    def weight() -> np.ndarray:
        if isinstance(tensor, MappedTensor) and tensor.dtype == ir.DataType.FLOAT and tensor.nbytes:
            return tensor.unaligned()  # no draw moves numbers in float32
        array = stored.constant(name, _strings(tensor.numpy()))
        return array if array.dtype == np.float32 else to_float64(array)

    return weight


def _strings(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "SO":
        return array
    words = [word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word) for word in array.ravel()]
    return np.array(words, dtype=object).reshape(array.shape)


def _plain(attr: ir.Attr) -> Any:
    if attr.type == ir.AttributeType.TENSOR:
        return _strings(attr.value.numpy())
    return tuple(attr.value) if isinstance(attr.value, list | tuple) else attr.value


def _empty(value: ir.Value) -> np.ndarray:
    """Return empty stacked arrays of the type and shape of a value: the result of a loop without iterations.

    Dimensions that are symbols, or sizes that no array has, count as 0.
    """
    shape = [dim if isinstance(dim, int) and dim >= 0 else 0 for dim in value.shape] if value.shape is not None else []
    dtype = value_spec(value).dtype or DType.DOUBLE
    wanted = np.float64 if dtype in WIDE else dtype.numpy
    try:
        return np.zeros((0, *shape), wanted)
    except ValueError:  # more elements, or dimensions, than numpy counts
        return np.zeros((0,) * min(1 + len(shape), 64), wanted)


def _kernel(
    node: ir.Node, opsets: Mapping[str, int], attributes: Mapping[str, ir.Attr], *, borrow: bool = False
) -> Kernel:
    if borrow and node.domain in _STANDARD:
        return _borrowed(node, opsets, attributes)
    own = kernel_for(node.op_type) if node.domain in _STANDARD else None
    if own is not None:
        return own
    if node.domain in _STANDARD and node.op_type in BORROWED:
        return _borrowed(node, opsets, attributes)
    full = f"{node.domain}.{node.op_type}" if node.domain not in _STANDARD else node.op_type
    raise build_failed(
        NAME,
        f"node '{node.name}': {full} has no float64 arithmetic here",
        cure="use --reference onnxruntime:optimization=none",
    )


def _borrowed(node: ir.Node, opsets: Mapping[str, int], attributes: Mapping[str, ir.Attr]) -> Kernel:
    """Return the onnx package's implementation of an operator as a kernel."""
    from onnx.reference.ops import load_op

    proto = onnx.NodeProto(op_type=node.op_type, domain="", name=node.name or "")
    proto.input.extend("" if value is None else value.name or "" for value in node.inputs)
    proto.output.extend(value.name or "" for value in node.outputs)
    proto.attribute.extend(ir.to_proto(attr) for name, attr in attributes.items() if name not in _NARROWING)
    since, meant = _MEANT_BEFORE.get(node.op_type, (0, {}))
    if opsets.get("", 0) < since:
        proto.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in meant.items())
    parameters = {"log": lambda *_: None, "opsets": dict(opsets), "new_ops": None, "verbose": 0}
    try:
        implementation = load_op("", node.op_type, opsets.get("", 0))(proto, parameters)
    except Exception as error:  # older releases of the package lack some operators, with different exceptions
        raise build_failed(NAME, f"node '{node.name}': {error}") from error

    def kernel(call: Call) -> tuple[Any, ...]:
        return tuple(implementation.run(*call.inputs))

    return kernel
