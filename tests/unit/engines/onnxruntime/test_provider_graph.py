"""Graphs that QNN 2.7.0 dumped for the bundled models (tests/data/qnn), read back as regions of ONNX nodes."""

import json
from pathlib import Path

import pytest

from tensortriage.engines.onnxruntime.provider_graph import placed_regions
from tensortriage.model.model import Model

ROOT = Path(__file__).parents[4]
QNN, CPU = "QNNExecutionProvider", "CPUExecutionProvider"


@pytest.fixture(scope="module", params=["digits_cnn", "digits_vit"])
def recorded(request):
    dumped = json.loads((ROOT / "tests/data/qnn" / f"{request.param}.json").read_text())
    return Model.load(ROOT / "examples" / f"{request.param}.onnx"), [dumped]


def on_qnn(model):
    return {"provider": QNN, "nodes": [{"name": n.name, "op_type": n.op_type, "domain": ""} for n in model.graph.nodes]}


def test_every_computing_node_is_in_one_region(recorded):
    model, dumped = recorded
    regions = placed_regions(model, dumped, [on_qnn(model)], QNN, "float16")
    placed = [name for region in regions for name in region.nodes]
    assert len(placed) == len(set(placed))
    fed = {node.name for node in model.graph.descendants([model.inputs[0].name])}
    missing = [n for n in fed - {*placed} if not {*model.graph.node(n).outputs} & model.graph.shape_like]
    assert [name for name in missing if model.graph.node(name).op_type not in ("Constant", "Concat")] == []
    assert {region.device for region in regions} == {QNN}
    assert {region.precision for region in regions} == {"float16"}
    ends = [model.graph.node(region.nodes[-1]).index for region in regions if region.nodes]
    assert ends == sorted(ends)


def test_fusions_are_those_of_the_graph_that_was_dumped():
    model = Model.load(ROOT / "examples" / "digits_vit.onnx")
    dumped = json.loads((ROOT / "tests/data/qnn/digits_vit.json").read_text())
    regions = {r.nodes[-1]: r for r in placed_regions(model, [dumped], [on_qnn(model)], QNN, "float16") if r.nodes}
    gelu = regions["/blocks.0/mlp/act/Mul_1"]
    assert gelu.kind == "Gelu"
    assert [model.graph.node(name).op_type for name in gelu.nodes] == ["Div", "Erf", "Add", "Mul", "Mul"]
    linear = regions["/blocks.0/mlp/fc1/Add"]
    assert (linear.kind, [model.graph.node(name).op_type for name in linear.nodes]) == (
        "FullyConnected",
        ["MatMul", "Add"],
    )
    assert len(regions["/norm/Add_1"].nodes) == 9


def test_what_fell_back_is_placed_where_it_ran(recorded):
    model, _ = recorded
    last = model.graph.nodes[-1]
    elsewhere = {"provider": CPU, "nodes": [{"name": last.name + "_token_7", "op_type": last.op_type, "domain": ""}]}
    regions = placed_regions(model, [], [on_qnn(model), elsewhere], QNN, "float16")
    assert {region.name: region.device for region in regions} == {
        f"{QNN} 0": QNN,
        last.name + "_token_7": CPU,
    }
