"""Patterns of plugins over a model of which it is written here what is left when a node stands for a part."""

import onnx
import pytest

from tensortriage.errors import DataError, TriageError, UsageError
from tensortriage.model.model import Model
from tensortriage.model.plugin_patterns import Instance, PluginMatch, matches, patterns, replace
from tensortriage.workflows.edits.plugins import find_matches, read_matches, replace_matches, write_matches
from tensortriage.workflows.edits.requests import Source, Target

FINDS = """
import numpy as np
print("looking")
def get_matching_subgraphs(graph):
    return [
        {"inputs": [node.inputs[0].name], "outputs": [node.o().outputs[0].name],
         "attributes": {"slope": np.float32(0.5), "axes": np.array([0, 1])}}
        for node in graph.nodes if node.op == "Relu" and node.outputs[0].outputs
    ]
def get_plugin_metadata():
    return {"name": "both", "op": "BothPlugin"}
"""
REPLACES = """
def replace_with_plugin(graph, input_tensors, output_tensors, attrs, op):
    output_tensors[0].inputs.clear()
    graph.layer(op="Own" + op, name="own", inputs=input_tensors, outputs=output_tensors, attrs=attrs)
    graph.cleanup().toposort()
    return True
"""


@pytest.fixture
def model(tmp_path):
    """Return x -> Relu -> r -> Neg -> n -> Abs -> y, where r leaves the model as well."""
    nodes = [("Relu", "x", "r"), ("Neg", "r", "n"), ("Abs", "n", "y")]
    values = {name: onnx.helper.make_tensor_value_info(name, 1, [2, 2]) for name in "xry"}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, [one], [other], op.lower()) for op, one, other in nodes], "g",
        [values["x"]], [values["r"], values["y"]],
    )  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def pattern(tmp_path, text, name="both"):
    path = tmp_path / "plugins" / name / "pattern.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def operators(model):
    return [(node.op_type, tuple(node.inputs), tuple(node.outputs)) for node in model.graph.nodes]


def test_a_node_stands_for_a_part_and_what_is_used_elsewhere_stays(model, tmp_path):
    match = PluginMatch("both", "BothPlugin", [Instance(["x"], ["n"], {"slope": 0.5})])
    found = replace(Model.load(model), match, tmp_path / "no-pattern.py")
    assert sorted(operators(found)) == [
        ("Abs", ("n",), ("y",)), ("BothPlugin", ("x",), ("n",)), ("Relu", ("x",), ("r",)),
    ]  # fmt: skip
    (node,) = [node for node in found.graph.nodes if node.op_type == "BothPlugin"]
    assert (node.name, [spec.name for spec in found.outputs]) == ("both_0", ["r", "y"])


def test_a_place_that_is_not_in_the_model(model, tmp_path):
    match = PluginMatch("both", "BothPlugin", [Instance(["x"], ["elsewhere"])])
    with pytest.raises(TriageError, match="elsewhere"):
        replace(Model.load(model), match, tmp_path / "no-pattern.py")


def test_patterns_are_chosen_by_name(tmp_path):
    for name in ("two", "one", "three"):
        pattern(tmp_path, "", name)
    folder = tmp_path / "plugins"
    assert list(patterns(folder)) == ["one", "three", "two"]
    assert list(patterns(folder, exclude=["two"])) == ["one", "three"]
    assert list(patterns(folder, include=["two"])) == ["two"]
    for error, named in (("plugin-unknown", {"include": ["four"]}), ("plugin-unknown", {"exclude": ["four"]})):
        with pytest.raises(UsageError) as caught:
            patterns(folder, **named)
        assert caught.value.slug == error
    with pytest.raises(UsageError) as caught:
        patterns(tmp_path)
    assert caught.value.slug == "pattern-missing"


def test_matches_are_written_read_and_replaced(model, tmp_path, capsys):
    pytest.importorskip("onnx_graphsurgeon")
    pytest.importorskip("yaml")
    pattern(tmp_path, FINDS)
    pattern(tmp_path, FINDS.replace("Relu", "Tanh"), "nothing")
    found = find_matches(Source(model), tmp_path / "plugins", include=(), exclude=())
    match = PluginMatch("both", "BothPlugin", [Instance(["x"], ["n"], {"slope": 0.5, "axes": [0, 1]})])
    assert found == {"both": match, "nothing": None}
    assert capsys.readouterr().out == ""  # what a pattern prints is no result
    write_matches(tmp_path / "m.yaml", [match])
    assert read_matches(tmp_path / "m.yaml") == [match]
    target = Target(tmp_path / "o.onnx")
    result = replace_matches(Source(model), target, tmp_path / "plugins", [match])
    assert [(step.name, step.nodes) for step in result.passes] == [("both x 1", 3)]
    assert "BothPlugin" in {node.op_type for node in Model.load(tmp_path / "o.onnx").graph.nodes}


def test_what_polygraphy_writes_is_read(tmp_path):
    """The text is what Polygraphy 0.53.6 wrote for a match of two places."""
    pytest.importorskip("yaml")
    (tmp_path / "config.yaml").write_text(
        "name: toyPlugin\nop: CustomToyPlugin\ninstances:\n- inputs:\n  - i1\n  outputs:\n  - o1\n  - o2\n"
        "  attributes:\n    ToyX: 2\n- inputs:\n  - i2\n  outputs:\n  - o3\n"
    )
    places = [Instance(["i1"], ["o1", "o2"], {"ToyX": 2}), Instance(["i2"], ["o3"])]
    assert read_matches(tmp_path / "config.yaml") == [PluginMatch("toyPlugin", "CustomToyPlugin", places)]
    for text in ("[1, 2]", "name: x", "{"):
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(DataError) as caught:
            read_matches(tmp_path / "config.yaml")
        assert caught.value.slug == "matches-unreadable"


def test_a_plugin_may_replace_in_its_own_way(model, tmp_path):
    pytest.importorskip("onnx_graphsurgeon")
    match = PluginMatch("both", "BothPlugin", [Instance(["x"], ["n"], {"slope": 0.5})])
    found = replace(Model.load(model), match, pattern(tmp_path, FINDS + REPLACES))
    assert ("OwnBothPlugin", ("x",), ("n",)) in operators(found)
    refusing = pattern(tmp_path, FINDS + REPLACES.replace("return True", "return False"), "refusing")
    with pytest.raises(DataError, match="did not replace x -> n"):
        replace(Model.load(model), match, refusing)


@pytest.mark.parametrize(
    ("text", "slug", "words"),
    [
        ("import no_such_package", "pattern-failed", "pip install no_such_package"),
        ("def get_matching_subgraphs(graph): 1 / 0", "pattern-failed", "correct the pattern"),
        ("", "pattern-failed", "define it"),
        (FINDS.replace('"inputs": [node.inputs[0].name]', '"inputs": 3'), "pattern-answer", "inputs"),
    ],
)
def test_bad_patterns_are_told(text, slug, words, model, tmp_path):
    pytest.importorskip("onnx_graphsurgeon")
    with pytest.raises(DataError) as caught:
        matches(Model.load(model), pattern(tmp_path, text))
    assert caught.value.slug == slug
    assert words in (caught.value.cure or "")
