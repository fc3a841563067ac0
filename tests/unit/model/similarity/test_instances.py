"""Equal places of repeated blocks."""

import numpy as np
from onnx import helper

from models import chain, of_nodes
from tensortriage.model.model import Model
from tensortriage.model.similarity.instances import Instances
from tensortriage_testing import encoder, save_model


def test_every_layer_of_an_encoder_has_its_copies(tmp_path):
    model = Model.load(save_model(encoder(layers=5, width=16, heads=2, tokens=4), tmp_path / "m.onnx"))
    found = Instances.of(model)
    names = [node.name for node in model.graph.nodes if node.op_type == "Softmax"]
    assert len(names) == 5
    assert found.alike[names[2]] == tuple(names)
    assert [found.copies[name] for name in names] == [0, 1, 2, 3, 4]
    for name, place in found.alike.items():
        assert name in place
        assert len({model.graph.node(other).op_type for other in place}) == 1


def test_a_block_that_differs_inside_is_no_instance():
    nodes = []
    for number, op in enumerate(["Relu", "Relu", "Tanh", "Relu", "Relu"]):
        source = f"v{number}"
        nodes += [
            helper.make_node("MatMul", [source, "w"], [f"a{number}"], name=f"matmul{number}"),
            helper.make_node(op, [f"a{number}"], [f"b{number}"], name=f"act{number}"),
            helper.make_node("Add", [f"b{number}", source], [f"v{number + 1}"], name=f"add{number}"),
        ]
    nodes[0].input[0] = nodes[2].input[1] = "x"
    nodes[-1].output[0] = "y"
    model = of_nodes(
        nodes, inputs={"x": (4, 4)}, outputs={"y": (4, 4)}, initializers={"w": np.eye(4, dtype=np.float32)}
    )
    alike = Instances.of(model).alike
    assert "matmul2" not in alike
    assert len(alike["matmul0"]) == 2
    assert set(alike["act3"]) == {"act3", "act4"}


def test_nothing_repeats_in_a_short_chain():
    assert not Instances.of(chain(4)).alike
