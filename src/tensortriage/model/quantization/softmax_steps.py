"""A quantized file whose Softmax is rounded in whole steps: what ONNX Runtime's integer kernel makes of it.

Its QLinearSoftmax (contrib_ops/cpu/quantization/qlinear_softmax.cc, 1.31.1), to which it fuses a Softmax between
quantizers, multiplies by the whole part of 1 over the scale: of 1/255, which float32 makes 254.99998, by 254.
"""

import numpy as np
import onnx_ir as ir

from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import quantizers
from tensortriage.model.transforms.rewrite_helpers import Names, find_nodes

_LEAST = np.finfo(np.float32).tiny


def coarse_softmaxes(graph: Graph) -> dict[str, np.float32]:
    """Return the step in which each quantizer of a Softmax is rounded where it is another than its scale, by node."""
    pairs, found = quantizers(graph), dict[str, np.float32]()
    made = {pair.result for pair in pairs}
    for pair in pairs:
        maker, scale = graph.producer(pair.value) if pair.value else None, graph.weight(pair.scale).reshape(-1)
        if maker is not None and maker.op_type == "Softmax" and maker.inputs[0] in made and scale.size == 1:
            step = np.float32(1) / max(np.floor(np.float32(1) / max(scale[0], _LEAST)), np.float32(1))
            found |= {pair.quantize: step} if step != scale[0] > 0 else {}
    return found


def softmax_in_whole_steps(model: Model) -> Model | None:
    """Return the model with these steps as scales of the quantizers alone; None for one without any.

    Args:
        model: The model; it is not changed.
    """
    steps = coarse_softmaxes(model.graph)
    clone = model.clone()
    names = Names(clone.ir.graph)
    for node in find_nodes(clone, steps):
        step = ir.tensor(np.asarray(steps[node.name or ""], np.float32), name=names.fresh(f"{node.name}::step"))
        scale = ir.Value(name=step.name, const_value=step, shape=ir.Shape(()), type=ir.TensorType(step.dtype))
        clone.ir.graph.register_initializer(scale)
        node.replace_input_with(1, scale)
    return Model.from_ir(clone.ir) if steps else None
