"""Tables that are looked up by whole numbers, such as the embeddings of tokens, become inputs of the model.

A model that takes token ids alone has no floating-point input that could be moved a little; its first numbers are rows
of such tables, wherever they are looked up, in the bodies of If, Loop and Scan as well.
"""

from collections.abc import Collection, Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.model.model import Model
from tensortriage.model.transforms.rewrite_helpers import is_standard


def tables(model: Model) -> Mapping[str, np.ndarray]:
    """Return the constants of the main graph in float32 of which a Gather takes rows, by name."""
    known = model.ir.graph.initializers
    gathers = (node for node in ir.traversal.RecursiveGraphIterator(model.ir.graph) if is_standard(node, "Gather"))
    read = (node.inputs[0] for node in gathers if node.inputs)
    names = dict.fromkeys(v.name for v in read if v is not None and v.name and known.get(v.name) is v)
    tensors = {name: known[name].const_value for name in names if name}
    return {n: t.numpy() for n, t in tensors.items() if t is not None and t.dtype == ir.DataType.FLOAT}


def feed_tables(model: Model, names: Collection[str]) -> Model:
    """Return the model that is given these constants as inputs; it is not changed itself."""
    clone = model.clone()
    for name in names:
        value = clone.ir.graph.initializers.pop(name)
        assert value.const_value is not None
        value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(value.const_value.numpy().shape)
        value.const_value = None
        clone.ir.graph.inputs.append(value)
    return Model.from_ir(clone.ir)
