"""Round every result to a narrow format and continue in the wide one: the cost of a number format alone.

A healthy fp16 kernel computes inside in float32 and stores fp16; all kernels agree on the stored numbers. So
after every node, input and constant the value goes through a Cast to the format and back, which is exact emulation of
storage without needing one kernel in that format. The pairs must not be optimized away: run the result with all graph
optimizations off.
"""

from collections.abc import Collection, Mapping

import onnx_ir as ir

from tensortriage.model.ir.attributes import bodies
from tensortriage.model.mixed_precision.lowerable_nodes import Lowering, decide
from tensortriage.model.mixed_precision.rounding_nodes import Rounder, opset_needed
from tensortriage.model.model import Model
from tensortriage.model.transforms.opset_upgrade import require_opset, retyped
from tensortriage.model.transforms.rewrite_helpers import insert_behind, take_over
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec


def round_results(
    model: Model, precision: Precision, *, specs: Mapping[str, ValueSpec], kept: Collection[str] = ()
) -> Model:
    """Return the model with every floating-point result rounded to a format.

    Rounded are graph inputs, initializers and constants where they are used, and what every node makes, inside the
    bodies of If, Loop and Scan as well; results of operators that only move data are not rounded again. Values that the
    format does not narrow are left alone, and so are shape computations, Resize scales and quantizers. A value beyond
    the range of the format becomes an infinity, or NaN where the format has none (fp8e4m3). Names of values do not
    change; the unrounded result of the node that makes V is named ``exact::V``.

    Args:
        model: The model; it is not changed. `tensortriage.model.cutting.explode.Exploded.model` works as well.
        precision: fp16, bf16, fp8e4m3, fp8e5m2 or int8. For int8 each tensor gets the 8-bit grid between its own
            extremes, as ONNX's DynamicQuantizeLinear defines it.
        specs: Types of values; see `tensortriage.model.shape_inference.value_specs.value_specs`.
        kept: Names of nodes that compute and store in the wide format, on constants that are not rounded; what they
            make is rounded where another node uses it.

    Raises:
        UsageError: For another precision (``precision-not-emulated``) or an unknown node (``node-unknown``).
        ModelError: When the type of a value is not known (``value-type-unknown``) or the opset cannot express the
            format and the model cannot be upgraded (``opset-too-old``).
    """
    upgraded = require_opset(model, opset_needed(precision))
    lowering = decide(upgraded, specs=retyped(upgraded, specs), kept_nodes=kept)
    _Rounding(lowering, precision).apply()
    return Model.from_ir(lowering.model)


class _Rounding:
    """One edit of one model: inserts the rounding nodes, sharing those of values that several nodes use."""

    def __init__(self, lowering: Lowering, precision: Precision) -> None:
        self._lowering = lowering
        self._rounder = Rounder(lowering, precision)
        self._names = self._rounder.names
        self._at_use: dict[ir.Value, ir.Value] = {}
        self._body_inputs: set[ir.Value] = set()

    def apply(self) -> None:
        """Edit the model in place."""
        nodes = tuple(self._lowering.lowered())
        for node in nodes:
            for body in bodies(node):
                self._body_inputs.update(body.inputs)
        results = [value for node in nodes for value in node.outputs if self._rounder.rounds_result(node, value)]
        for node in nodes:
            for index, value in enumerate(node.inputs):
                if value is not None and self._rounds_operand(node, index, value):
                    node.replace_input_with(index, self._rounded_for_use(value))
            for body in bodies(node):
                self._round_body_outputs(body)
        for value in results:
            self._round_result(value)

    def _rounds_operand(self, node: ir.Node, index: int, value: ir.Value) -> bool:
        return self._rounder.rounds_operand(node, index, value) and not self._is_rounded(value)

    def _is_rounded(self, value: ir.Value) -> bool:
        """Return whether a value holds rounded numbers already, judged by its producer."""
        producer = value.producer()
        if producer is None:
            return value in self._body_inputs
        return producer not in self._lowering.kept

    def _rounded_for_use(self, value: ir.Value) -> ir.Value:
        """Return the rounded version of an input, a constant or the result of a kept node, made once."""
        if value not in self._at_use:
            nodes = self._rounder.nodes(value)
            nodes[-1].outputs[0].name = self._names.fresh(f"rounded::{value.name}")
            insert_behind(value, nodes)
            self._at_use[value] = nodes[-1].outputs[0]
        return self._at_use[value]

    def _round_body_outputs(self, body: ir.Graph) -> None:
        for index, value in enumerate(body.outputs):
            if self._rounder.is_wide(value) and not self._is_rounded(value):
                nodes = self._rounder.nodes(value)
                nodes[-1].outputs[0].name = self._names.fresh(f"rounded::{value.name}")
                body.extend(nodes)
                body.outputs[index] = nodes[-1].outputs[0]

    def _round_result(self, value: ir.Value) -> None:
        """Put the rounding nodes behind a node; their results take over the names and all uses."""
        users = tuple(value.uses())
        take_over(value, self._rounder.nodes(value), users, name=self._names.fresh(f"exact::{value.name}"))
