"""What a number format costs, shown without the hardware: the same graph with every float32 result rounded.

ONNX Runtime's CPU provider computes a float16 graph in float32 and rounds only here and there, so it hides overflows.
A Cast to float16 and back after every operator does not: with graph optimisations off, both Casts are executed.
"""

from collections.abc import Collection, Mapping

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper


def rounded(model: onnx.ModelProto, *, to: int = TensorProto.FLOAT16, kept: Collection[str] = ()) -> onnx.ModelProto:
    """Return a copy whose float32 inputs, weights and operator results all pass through element type ``to``.

    The results of the nodes named in ``kept`` stay float32.
    Value names stay as they are; the unrounded tensor before each pair of Casts is called ``NAME@fp32``.
    """
    typed = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    floats = {
        v.name
        for v in [*typed.value_info, *typed.input, *typed.output]
        if v.type.tensor_type.elem_type == TensorProto.FLOAT
    } | {w.name for w in typed.initializer if w.data_type == TensorProto.FLOAT}

    def pair(source: str, result: str) -> list[onnx.NodeProto]:
        narrow = f"{result}@narrow"
        return [
            helper.make_node("Cast", [source], [narrow], name=f"{narrow}/Cast", to=to),
            helper.make_node("Cast", [narrow], [result], name=f"{result}@wide/Cast", to=TensorProto.FLOAT),
        ]

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    given = [v.name for v in [*copy.graph.input, *copy.graph.initializer] if v.name in floats]
    nodes = [cast for name in given for cast in pair(name, f"{name}@rounded")]
    for node in copy.graph.node:
        node.input[:] = [f"{name}@rounded" if name in given else name for name in node.input]
        results = [name for name in node.output if name in floats and node.name not in kept]
        node.output[:] = [f"{name}@fp32" if name in results else name for name in node.output]
        nodes += [node, *(cast for name in results for cast in pair(f"{name}@fp32", name))]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def evaluate(model: onnx.ModelProto, feed: Mapping[str, np.ndarray], *values: str) -> dict[str, np.ndarray]:
    """Run ``model`` unoptimised on the CPU; return its outputs, or the named ``values``, in graph order."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if values:
        del copy.graph.output[:]
        copy.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in values)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feed)), strict=True))


def first_non_finite(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> onnx.NodeProto | None:
    """Return the first node, in graph order, whose rounded result holds an Inf or NaN; None when there is none.

    A weight or Constant that is not finite after rounding is not a node's doing and is passed over.
    """
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    copy = rounded(model)
    produced = {name for node in copy.graph.node for name in node.output}
    results = evaluate(copy, feed, *(name for node in nodes for name in node.output if name in produced))
    for node in nodes:
        for name in node.output:
            array = results[name]
            if array.dtype == np.float32 and not np.isfinite(array).all():
                return node
    return None
