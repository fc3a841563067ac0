"""``triage inspect model``: what is shown beside the summary, where it is requested."""

import json

import onnx
import pytest
from click.testing import CliRunner

import models
from tensortriage.errors import ModelError
from tensortriage_inspect.model import ModelView, deeper, inspect_model

TEXT = """g (float[4] x, int64[1] i, float[N] unused) => (float[n] y) <float[4] w = {1.5, -2, 0, 0}> {
    [scale] s = LeakyRelu<alpha=0.5>(x)
    [add] a = Add(s, w)
    [wide] y = Tile(a, i) }"""


@pytest.fixture
def path(tmp_path):
    return models.write(tmp_path / "m.onnx", TEXT)


def run(path, *words):
    """Return what comes of a command line in this process."""
    return CliRunner().invoke(inspect_model, [str(path), *words], standalone_mode=False)


def shown(path, *words):
    """Return what a command line that works prints."""
    result = run(path, *words)
    assert result.exception is None, result.exception
    return result.stdout


def document(path, *words):
    """Return the document that a command line prints."""
    return json.loads(shown(path, "--json", *words))


def test_nothing_but_the_summary_is_shown_unless_asked_for(path):
    found = document(path)
    assert (found["format"], found["nodes"]) == ("tensortriage.model-summary/1", 3)
    assert not {"layers", "values", "weights", "unbounded_sizes"} & set(found)
    text = shown(path)
    assert not [words for words in ("layers (", "values (", "weight w", "alpha") if words in text]


@pytest.mark.parametrize(("parts", "attributes"), [(["layers"], False), (["attrs"], True), (["layers", "attrs"], True)])
def test_layers_are_listed_with_attributes_where_these_are_asked_for(path, parts, attributes):
    text = shown(path, "--show", *parts)
    assert "layers (3)" in text
    assert ("alpha = 0.5" in text) is attributes
    assert len(document(path, "--show", *parts)["layers"]) == 3


def test_weights_are_told_by_their_numbers(path, tmp_path):
    (weight,) = document(path, "--show", "weights")["weights"]
    assert (weight["name"], weight["minimum"], weight["maximum"], weight["zeros"]) == ("w", -2, 1.5, 2)
    text = shown(path, "--show", "weights")
    assert "weight w float32 [4], 16 B\n" in text
    assert "2 zeros\n" in text
    odd = models.proto(TEXT)
    odd.graph.initializer[0].CopyFrom(onnx.helper.make_tensor("w", 1, [4], [1.0, float("nan"), float("inf"), 0.0]))
    assert "1 zeros, 2 not finite" in shown(models.write(tmp_path / "odd.onnx", odd), "--show", "weights")
    assert "weights" not in document(path, "--show", "weights", "--ignore-external-data")


def test_inferred_values_are_those_that_nodes_make(path):
    found = document(path, "--shape-inference")["values"]
    assert [(value["name"], value["shape"]) for value in found] == [("s", [4]), ("a", [4]), ("y", ["n"])]
    text = shown(path, "--shape-inference")
    assert "values (3)" in text
    assert "  a float32 [4]" in text


def test_sizes_that_depend_on_data_are_told(path):
    assert [row["value"] for row in document(path, "--list-unbounded-dds")["unbounded_sizes"]] == ["i"]
    assert shown(path, "--list-unbounded-dds").endswith("(1)\n  i  decides the size of Tile wide\n")


def test_what_needs_the_loaded_model_is_asked_for_one_by_one(path):
    assert deeper(ModelView(model=path)) == {}
    assert set(deeper(ModelView(model=path, unbounded=True, show=("weights",), infer_shapes=True))) == {
        "unbounded_sizes", "weights", "values",
    }  # fmt: skip


def test_weights_elsewhere_are_found_where_they_are_said_to_be(tmp_path):
    path = models.with_external_data(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "weights.bin").rename(tmp_path / "b" / "weights.bin")
    assert "MISSING" in shown(path)
    words = ("--external-data-dir", str(tmp_path / "b"))
    assert "MISSING" not in shown(path, *words)
    assert document(path, *words, "--show", "weights")["weights"][0]["maximum"] == 31
    assert isinstance(run(path, "--show", "weights").exception, ModelError)
