"""What is done to a model leaves the origins of its nodes in place; the models were exported by torch 2.13."""

from pathlib import Path

import pytest
from onnx import helper

from models import of_nodes
from tensortriage.model.cutting.explode import explode
from tensortriage.model.cutting.extract import extract
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.constant_folding import fold_constants
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.model.transforms.unused_removal import clean
from tensortriage.model.transforms.widen import widened
from tensortriage.values.dtype import Precision

FOLDER = Path(__file__).resolve().parents[3] / "data" / "torch"


@pytest.fixture(params=["small_transformer.onnx", "small_transformer_legacy.onnx"])
def model(request):
    return Model.load(FOLDER / request.param)


def test_nodes_say_module_class_and_line():
    graph = Model.load(FOLDER / "small_transformer.onnx").graph
    labels = {graph.origin(node.name).label for node in graph.nodes}
    source = (FOLDER / "small_transformer.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "self.o_proj(" in text)
    assert f"layers.1.attention.o_proj (Linear, small_transformer.py:{line})" in labels
    assert all(graph.origin(node.name).is_known for node in graph.nodes)


@pytest.mark.parametrize(
    "change",
    [
        fold_constants,
        clean,
        widened,
        lambda model: mark_outputs(model, markable(model)),
        lambda model: require_opset(model, 22),
        lambda model: extract(model, [n.name for n in model.graph.nodes[5:30]], specs=value_specs(model)),
        lambda model: explode(model, specs=value_specs(model)).model,
        lambda model: convert(model, Precision.FP16, specs=value_specs(model), kept_op_types=["Softmax"]),
        lambda model: round_results(model, Precision.BF16, specs=value_specs(model)),
    ],
)  # fmt: skip
def test_what_is_left_knows_where_it_comes_from(model, change, tmp_path):
    changed = change(model)
    changed = Model.load(changed.save(tmp_path / "changed.onnx")) if isinstance(changed, Model) else changed.model
    left = [node.name for node in changed.graph.nodes if node.name in model.graph]
    assert len(left) >= 15
    assert {name: changed.graph.origin(name) for name in left} == {name: model.graph.origin(name) for name in left}


def test_casts_belong_to_the_module_whose_value_they_change():
    model = Model.load(FOLDER / "small_transformer.onnx")
    typed = convert(model, Precision.FP16, specs=value_specs(model), kept_op_types=["Softmax"]).graph
    casts = [node for node in typed.nodes if node.name not in model.graph and typed.producer(node.inputs[0])]
    assert len(casts) >= 4
    for cast in casts:
        producer = typed.producer(cast.inputs[0])
        assert typed.origin(cast.name) == typed.origin(producer.name) != ""


def test_a_node_without_metadata_belongs_to_the_module_of_its_users():
    changed = Model.load(FOLDER / "small_transformer.onnx").clone()
    whole = Model.load(FOLDER / "small_transformer.onnx").graph
    inner = next(n for n in whole.nodes if n.op_type == "MatMul" and whole.origin(n.name).module == "head")
    end = next(n for n in whole.nodes if n.op_type == "Softmax")
    for name in (inner.name, end.name):
        changed.ir.graph.node(name).metadata_props.clear()
    graph = Model.from_ir(changed.ir).graph
    assert graph.origin(inner.name).module == "head"
    assert graph.origin(end.name).module == "layers.0.attention"
    assert graph.origin(end.name).module_class == ""


@pytest.mark.parametrize(
    ("names", "module"),
    [
        (("/lstm/Gather", "Unsqueeze_18", "/lstm/Concat"), "lstm"),
        (("/lstm/Gather", "/Unsqueeze", "/lstm/Concat"), ""),  # a call of the network itself
        (("/lstm/Gather", "Unsqueeze_18", "/other/Concat"), ""),
        (("start", "Unsqueeze_18", "/lstm/Concat"), ""),
    ],
)
def test_a_node_without_a_path_is_of_the_module_of_all_around_it(names, module):
    nodes = [helper.make_node("Neg", [a], [b], name=name) for a, b, name in zip("xab", "aby", names, strict=True)]
    graph = of_nodes(nodes, inputs={"x": (2,)}, outputs={"y": (2,)}).graph
    assert graph.origin(names[1]).module == module
