"""Gives the vision transformer position ids, as a language model has them: exact in float32, worthless in bfloat16.

The learned position of each patch becomes a linear map of the sines and cosines of ``position_ids`` times a few
frequencies. Ids that count from 1000, as they do in the middle of a long sequence, are whole numbers that bfloat16 (8
significant bits) rounds to multiples of 4, and the angles of up to 3000 radians that follow from them are off by up to
8 radians.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FIRST = 1000
"""Id of the first patch."""
WAVES = 8
"""Frequencies: with a sine and a cosine of each there are as many features as patches."""


def position_ids(patches: int) -> np.ndarray:
    """Return the ids of a picture's patches, int64 ``[patches]``."""
    return np.arange(FIRST, FIRST + patches)


def with_position_ids(model: onnx.ModelProto, weight: str = "position") -> onnx.ModelProto:
    """Return a copy in which a learned position, float32 ``[patches, width]``, is computed from an input."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    (learned,) = (tensor for tensor in graph.initializer if tensor.name == weight)
    values = numpy_helper.to_array(learned)
    graph.initializer.remove(learned)
    ids = position_ids(len(values))
    frequencies = (2 * np.pi * np.arange(1, WAVES + 1) / (len(values) + 1)).astype(np.float32)
    angles = ids[:, None].astype(np.float32) * frequencies
    features = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float64)
    project = np.linalg.solve(features, values.astype(np.float64)).astype(np.float32)
    constants = {"positions.axis": np.array([1]), "positions.frequencies": frequencies, "positions.project": project}
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())

    def node(op_type: str, inputs: list[str], output: str = "", **attributes: int) -> onnx.NodeProto:
        name = f"/positions/{op_type}"
        return helper.make_node(op_type, inputs, [output or f"{name}_output_0"], name=name, **attributes)

    nodes = [node("Cast", ["position_ids"], to=TensorProto.FLOAT)]
    nodes += [node("Unsqueeze", [nodes[-1].output[0], "positions.axis"])]
    nodes += [node("Mul", [nodes[-1].output[0], "positions.frequencies"])]
    nodes += [node(op_type, [nodes[2].output[0]]) for op_type in ("Sin", "Cos")]
    nodes += [node("Concat", [nodes[3].output[0], nodes[4].output[0]], axis=-1)]
    nodes += [node("MatMul", [nodes[-1].output[0], "positions.project"], weight)]
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])
    graph.input.append(helper.make_tensor_value_info("position_ids", TensorProto.INT64, [len(values)]))
    onnx.checker.check_model(copy, full_check=True)
    return copy
