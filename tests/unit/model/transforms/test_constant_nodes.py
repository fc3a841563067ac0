"""Constant nodes become weights of the same numbers."""

import numpy as np
import onnx

from tensortriage.model.model import Model
from tensortriage.model.transforms.constant_nodes import without_constant_nodes


def constants(tmp_path, *outputs):
    """Return x + a + b, with a tensor a and a number b in Constant nodes, and these outputs."""
    made = onnx.helper.make_node
    nodes = [
        made("Constant", [], ["a"], "a", value=onnx.numpy_helper.from_array(np.float32([1, 2]))),
        made("Constant", [], ["b"], "b", value_float=3.0),
        made("Add", ["x", "a"], ["s"], "s"),
        made("Add", ["s", "b"], ["y"], "y"),
    ]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "g", [value("x", 1, [2])], [value(name, 1, None) for name in outputs])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    return Model.load(tmp_path / "m.onnx")


def saved(model, tmp_path):
    model.save(tmp_path / "o.onnx")
    graph = onnx.load(tmp_path / "o.onnx").graph
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer}
    return [node.op_type for node in graph.node], weights


def test_numbers_stay(tmp_path):
    model = constants(tmp_path, "y")
    assert saved(without_constant_nodes(model), tmp_path) == (["Add", "Add"], {"a": [1.0, 2.0], "b": 3.0})
    assert len(model.graph.nodes) == 4  # it is not changed


def test_outputs_of_the_model_stay_nodes(tmp_path):
    found = without_constant_nodes(constants(tmp_path, "y", "a"))
    assert saved(found, tmp_path) == (["Constant", "Add", "Add"], {"b": 3.0})
