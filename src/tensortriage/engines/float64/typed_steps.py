"""From a model and an arithmetic to the rounding of each node: the part of building a program that knows types.

A value is rounded where it is made, so that every reader sees the same number; inputs and weights are rounded to a
format where a node reads them. Which values a format rounds is decided by
`tensortriage.model.mixed_precision.rounding_nodes`, the same for the engine ``emulate``.
"""

import dataclasses
import weakref
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from tensortriage.engines.float64.arithmetic import EXACT, RESULTS_ROUNDED, Arithmetic
from tensortriage.engines.float64.kernels import ELEMENTWISE
from tensortriage.engines.float64.number_rounding import Rounding, in_blocks, rounded
from tensortriage.engines.float64.stored_numbers import AS_STORED
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.attributes import bodies
from tensortriage.model.mixed_precision.lowerable_nodes import Lowering, decide
from tensortriage.model.mixed_precision.rounding_nodes import MOVES_DATA, Rounder
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.replace_nodes import with_bodies, with_runtime_bodies
from tensortriage.model.shape_inference.value_specs import typing_specs
from tensortriage.model.transforms.rewrite_helpers import is_standard
from tensortriage.values.dtype import DType

Entry = TypeVar("Entry")

SAME_EVERYWHERE = MOVES_DATA | {"Add", "Sub", "Cast", "CastLike"}
"""Operators whose results no healthy engine gets more wrong than another: a sum of two numbers and a conversion are
correctly rounded by every one of them (IEEE 754). In ``x + -1e9`` it absorbs x; ten times its rounding error would not.
An index of more than 24 bits that exporters convert to float32 and back is the neighbour's, and no other one's."""

QUANTIZERS = ("QuantizeLinear", "QLinearConv", "QLinearMatMul")
"""Operators whose results are integers, each rounded from a number that engines compute in float32."""


@frozen_dataclass
class Finish:
    """Conversion of one exact result before the next operator reads it.

    Attributes:
        error: The error of an approximated function; None for none.
        rounding: How it is rounded then; None when it is not.
        amplify: Factor on the error that the result has in float32.
    """

    error: Callable[[np.ndarray], np.ndarray] | None
    rounding: Rounding | None
    amplify: int = 1

    def __call__(self, y: np.ndarray, exact: np.ndarray | None = None) -> np.ndarray:
        """Return a result as the hardware would store it.

        Args:
            y: The kernel's result under the arithmetic of the step.
            exact: Its result without rounding inside, for `amplify`; ``y`` where that is the same.
        """
        if y.dtype != np.float64 or (self.error is None and self.amplify == 1):
            return y if self.rounding is None else self.rounding(y)
        return in_blocks(self._of_block, y, y if exact is None else exact)

    def _of_block(self, y: np.ndarray, exact: np.ndarray) -> np.ndarray:
        stored = y if self.error is None else self.error(y)
        if self.amplify != 1:
            moved = rounded(stored, DType.FLOAT)
            with np.errstate(invalid="ignore"):
                stored = moved - exact
                stored *= self.amplify
                stored += exact
            if not np.isfinite(stored).all():
                stored = np.where(np.isfinite(exact) & np.isfinite(moved), stored, moved)
        return stored if self.rounding is None else self.rounding(stored)


@frozen_dataclass
class ReadArgument:
    """The reading of an argument that a function first reduces to one period, with its errors.

    Attributes:
        error: Relative error of the reduction.
        rounding: How the argument is rounded before; None when it is not.
    """

    error: float
    rounding: Rounding | None

    def __call__(self, x: np.ndarray, exact: np.ndarray | None = None) -> np.ndarray:
        """Return a float64 array as it is read; any other array unchanged. ``exact`` is not looked at."""
        given = x if self.rounding is None else self.rounding(x)
        return given * (1.0 + self.error) if given.dtype == np.float64 else given


@frozen_dataclass
class StepArithmetic:
    """The facts about the arithmetic that a step needs.

    Attributes:
        arithmetic: The policy for its kernel.
        operands: Per input, how it is rounded; empty when none is.
        results: Per output, its conversion; empty for none.
    """

    arithmetic: Arithmetic = EXACT
    operands: tuple[Rounding | ReadArgument | None, ...] = ()
    results: tuple[Finish | None, ...] = ()


class ExactSteps:
    """Every step exact, on the meaning of stored numbers."""

    def __init__(self, model: Model, arithmetic: Arithmetic = EXACT) -> None:
        self.arithmetic = arithmetic
        self.model = with_runtime_bodies(model).ir

    def step(self, node: ir.Node) -> StepArithmetic:
        """Return that nothing is rounded."""
        return StepArithmetic(dataclasses.replace(EXACT, stored=self.arithmetic.stored.of_node(node.name or "")))

    def output(self, value: ir.Value) -> Rounding | None:
        """Return that an output of the model is not rounded."""
        return None


class TypedSteps:
    """The steps of one model under an arithmetic.

    Attributes:
        model: The model to build the program from, functions inlined; composite operators by their bodies where more
            is rounded than results.

    Raises:
        ModelError: When a function cannot be inlined or the type of a value is not known.
    """

    def __init__(self, model: Model, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic
        self._lowering = _lowering(with_runtime_bodies(model) if arithmetic == RESULTS_ROUNDED else with_bodies(model))
        self.model = self._lowering.model
        self._rounder = Rounder(self._lowering, arithmetic.precision) if arithmetic.format is not None else None
        self._body_inputs = {v for node in self._lowering.lowered() for body in bodies(node) for v in body.inputs}
        self._policies: dict[DType | None, Arithmetic] = {}
        self._roundings: dict[tuple[DType, bool, bool], Rounding | None] = {}

    def step(self, node: ir.Node) -> StepArithmetic:
        """Return the arithmetic of one node."""
        types = [self._dtype(value) for value in node.outputs]
        wide = next((dtype for dtype in types if dtype is not None), None)
        if wide is None and is_standard(node, *QUANTIZERS):
            wide = DType.FLOAT
        if wide not in self._policies:
            self._policies[wide] = self.arithmetic.for_results(wide)
        arithmetic = self._policies[wide]
        if arithmetic.stored != AS_STORED:
            arithmetic = dataclasses.replace(arithmetic, stored=arithmetic.stored.of_node(node.name or ""))
        finishes = tuple(self._finish(node, index, arithmetic) for index in range(len(node.outputs)))
        roundings = tuple(self._operand(node, index) for index in range(len(node.inputs)))
        error = arithmetic.functions.argument_error(node.op_type)
        operands = tuple(ReadArgument(error, rounding) if error else rounding for rounding in roundings)
        return StepArithmetic(arithmetic, _unless_empty(operands), _unless_empty(finishes))

    def output(self, value: ir.Value) -> Rounding | None:
        """Return how an output of the model is rounded when it was passed on unrounded inside."""
        producer = value.producer()
        if producer is None or not self._is_fused(value):
            return None
        return self._rounding(producer, value)

    def _dtype(self, value: ir.Value) -> DType | None:
        """Return the type of a value that is a floating-point tensor."""
        kind = self._lowering.tensor(value)
        dtype = DType(kind.value) if kind else None  # UNDEFINED, of results that nobody reads, is 0
        return dtype if dtype is not None and dtype.is_float and dtype.bits >= 16 else None

    def _finish(self, node: ir.Node, index: int, arithmetic: Arithmetic) -> Finish | None:
        value = node.outputs[index]
        if self._dtype(value) is None or bodies(node) or is_standard(node, "Constant"):
            return None
        error = arithmetic.functions.error(node.op_type) if index == 0 else None
        fused = self._is_fused(value)
        rounding = None if fused else self._rounding(node, value)
        if error is None and rounding is None:
            return None
        return Finish(error, rounding, 1 if is_standard(node, *SAME_EVERYWHERE) else arithmetic.amplify)

    def _rounding(self, node: ir.Node, value: ir.Value) -> Rounding | None:
        dtype = self._dtype(value)
        if dtype is None or (is_standard(node, *MOVES_DATA) and not self.arithmetic.fused):
            return None
        to_format = (
            self._rounder is not None
            and node not in self._lowering.kept
            and (self.arithmetic.fused or self._rounder.rounds_result(node, value))
        )
        convolved = is_standard(node, "Conv", "ConvTranspose")
        return self._to(dtype, to_format=to_format, convolved=convolved)

    def _to(self, dtype: DType, *, to_format: bool = True, convolved: bool = False) -> Rounding | None:
        key = dtype, to_format, convolved
        if key not in self._roundings:  # as many as there are types
            self._roundings[key] = self.arithmetic.rounding(dtype, to_format=to_format, convolved=convolved)
        return self._roundings[key]

    def _operand(self, node: ir.Node, index: int) -> Rounding | None:
        value = node.inputs[index]
        if value is None or self._rounder is None or node in self._lowering.kept:
            return None
        dtype = self._dtype(value)
        if dtype is None or self._is_rounded(value) or not self._rounder.rounds_operand(node, index, value):
            return None
        return self._to(dtype)

    def _is_rounded(self, value: ir.Value) -> bool:
        producer = value.producer()
        return value in self._body_inputs if producer is None else producer not in self._lowering.kept

    def _is_fused(self, value: ir.Value) -> bool:
        """Return whether one element-wise operator of the same graph is the only reader of a value."""
        producer = value.producer()
        readers = {use.node for use in value.uses()}
        if not self.arithmetic.fused or producer is None or len(readers) != 1:
            return False
        (reader,) = readers
        if value.is_graph_output() and value.graph is not self.model.graph:
            return False
        return reader.graph is producer.graph and is_standard(reader, *ELEMENTWISE)


def _lowering(model: Model) -> Lowering:
    """Return which nodes of a model a format rounds; decided once for all arithmetics under which it is built."""
    if (known := _LOWERINGS.get(model)) is None:
        known = _LOWERINGS[model] = decide(model, specs=typing_specs(model))
    return known


_LOWERINGS: weakref.WeakKeyDictionary[Model, Lowering] = weakref.WeakKeyDictionary()


def _unless_empty(entries: tuple[Entry | None, ...]) -> tuple[Entry | None, ...]:
    return entries if any(entry is not None for entry in entries) else ()
