"""Whatever a model says beside what it computes survives every surgeon command, unless changing it is the purpose.

One model carries everything that ONNX lets a model carry; each command edits it, and what came back is compared with
what went in, message by message, as onnx reads both files.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensortriage.cli import main
from tensortriage.model.provenance.network_outputs import NETWORK_OUTPUTS

COMMANDS = {
    "sanitize": [],
    "sanitize, cleaned": ["--cleanup", "--fold-constants"],
    "extract": ["--outputs", "y:auto"],
    "insert": ["--op", "Identity", "--inputs", "h", "--outputs", "h"],
    "convert": ["--opset", "19"],
}
WEIGHT = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def note(message, word):
    """Write documentation and metadata into a message."""
    message.doc_string = f"about {word}"
    message.metadata_props.add(key=f"key of {word}", value=f"value of {word}")


def everything():
    """Return a model with functions, metadata, annotations, sparse weights and training information."""
    body = [helper.make_node("Mul", ["a", "a"], ["s"], name="inner"), helper.make_node("Add", ["s", "a"], ["b"])]
    function = helper.make_function("mine", "Square", ["a"], ["b"], body, [helper.make_opsetid("", 18)])
    function.doc_string = "about the function"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("Square", ["h"], ["q"], name="second", domain="mine"),
        helper.make_node("Add", ["q", "thin"], ["y"], name="third"),
    ]
    note(nodes[0], "first")
    weights = [numpy_helper.from_array(WEIGHT, "w"), numpy_helper.from_array(np.array(0.1, np.float32), "scale")]
    weights[0].doc_string = "about w"
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("thin", TensorProto.FLOAT, [1], [2.5]),
        helper.make_tensor("at", TensorProto.INT64, [1], [3]),
        [8],
    )
    graph = helper.make_graph(
        nodes,
        "the graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8], doc_string="about x")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 8], doc_string="about y")],
        weights,
        value_info=[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 8]) for name in ("h", "q")],
        sparse_initializer=[sparse],
    )
    note(graph, "the graph")
    annotation = graph.quantization_annotation.add(tensor_name="h")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    model = helper.make_model(
        graph,
        functions=[function],
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)],
        ir_version=10,
        producer_name="somebody",
        producer_version="1.2",
        domain="org.example",
        model_version=3,
    )
    note(model, "the model")
    step = helper.make_graph([helper.make_node("Identity", ["w"], ["next"])], "a step", [], [])
    model.training_info.add(algorithm=step).update_binding.add(key="w", value="next")
    return model


@pytest.fixture
def edited(tmp_path, request, capfd):
    """What went in and what came back."""
    name = request.param
    words = ["convert"] if name == "convert" else ["surgeon", name.partition(",")[0]]
    onnx.save(everything(), tmp_path / "m.onnx")
    with pytest.raises(SystemExit) as ended:
        main([*words, str(tmp_path / "m.onnx"), *COMMANDS[name], "-o", str(tmp_path / "out.onnx")])
    printed = capfd.readouterr()
    assert not ended.value.code, printed.err
    return name, onnx.load(tmp_path / "m.onnx"), onnx.load(tmp_path / "out.onnx"), printed.out


@pytest.mark.parametrize("edited", COMMANDS, indirect=True)
def test_nothing_is_lost_beside_what_is_computed(edited):
    name, before, after, printed = edited
    for field in ("producer_name", "producer_version", "domain", "model_version", "ir_version"):
        assert getattr(after, field) == getattr(before, field), field
    assert after.doc_string == before.doc_string
    assert list(after.metadata_props) == list(before.metadata_props)
    wanted = {"": 19 if name == "convert" else 18, "mine": 1}
    assert {opset.domain: opset.version for opset in after.opset_import} == wanted
    kept = [entry for entry in after.graph.metadata_props if entry.key != NETWORK_OUTPUTS]
    assert kept == list(before.graph.metadata_props)
    assert (after.graph.name, after.graph.doc_string) == (before.graph.name, before.graph.doc_string)
    (function,) = after.functions
    assert (function.domain, function.name, function.doc_string) == ("mine", "Square", "about the function")
    assert next((node.op_type, node.name) for node in function.node) == ("Mul", "inner")
    nodes = {node.name: node for node in after.graph.node}
    assert {"first", "second", "third"} <= set(nodes)
    assert nodes["first"].doc_string == "about first"
    assert [(prop.key, prop.value) for prop in nodes["first"].metadata_props] == [("key of first", "value of first")]
    ends = {value.name: value for value in (*after.graph.input, *after.graph.output)}
    assert (ends["x"].doc_string, ends["y"].doc_string) == ("about x", "about y")
    assert [dim.dim_param or dim.dim_value for dim in ends["x"].type.tensor_type.shape.dim] == ["batch", 8]
    infos = {info.name for info in after.graph.value_info}
    assert {"h", "q"} <= infos
    (annotation,) = [a for a in after.graph.quantization_annotation if a.tensor_name == "h"]
    assert [(p.key, p.value) for p in annotation.quant_parameter_tensor_names] == [("SCALE_TENSOR", "scale")]
    weights = {weight.name: weight for weight in after.graph.initializer}
    assert weights["w"].doc_string.startswith("about w")
    np.testing.assert_array_equal(numpy_helper.to_array(weights["thin"]), [0, 0, 0, 2.5, 0, 0, 0, 0])  # made dense
    if name == "extract":  # a part cannot be trained as the whole was
        assert "training information" in printed
        assert not after.training_info
    else:
        assert list(after.training_info) == list(before.training_info)
