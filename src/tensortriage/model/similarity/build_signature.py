"""Whether an engine would treat two nodes alike: same operator and attributes, operands of the same type and shape.

The numbers of large constants do not matter to a build; those of small ones do (shapes, axes, scales), and count.
"""

import math
from collections.abc import Mapping

from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.similarity.structural_hash import NodeKeys, digest
from tensortriage.values.spec import ValueSpec

_SMALL = 256


class Likeness:
    """Makes the hashes of one model's nodes.

    Args:
        model: The model.
        specs: Types and shapes of values; see `tensortriage.model.shape_inference.value_specs.value_specs`.
    """

    def __init__(self, model: Model, specs: Mapping[str, ValueSpec]) -> None:
        self._graph = model.graph
        self._specs = specs
        self._keys = NodeKeys(model.ir.functions)
        self._nodes = {node.name: node for node in model.ir.graph}

    def of(self, node: Node) -> str:
        """Return a hash that is equal for nodes that an engine would treat alike."""
        operands = [self._operand(name) for name in (*node.inputs, *node.captures)]
        results = [_spec_text(self._specs.get(name)) if name else "" for name in node.outputs]
        repeated = [str(node.uses.index(name)) for name in node.uses]
        return digest(self._keys.signature(self._nodes[node.name]), *operands, *results, *repeated)

    def _operand(self, name: str) -> str:
        if not name:
            return ""
        constant = self._graph.constants.get(name)
        if constant is None:
            return _spec_text(self._specs.get(name))
        text = "constant " + _spec_text(constant)
        if math.prod(d for d in constant.shape or () if isinstance(d, int)) <= _SMALL:
            text += repr(self._graph.weight(name).tolist())
        return text


def _spec_text(spec: ValueSpec | None) -> str:
    """Return type and shape; inference names open dimensions as it likes, so one counts like another."""
    if spec is None or spec.shape is None:
        return f"{spec and spec.dtype}"
    return f"{spec.dtype} {[dim if isinstance(dim, int) else '?' for dim in spec.shape]}"
