import pytest

from tensortriage.model.ir.scope import node_scope


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("/encoder/layer.3/MatMul", "encoder/layer.3"),
        ("encoder/layer.3/MatMul", "encoder/layer.3"),
        ("/MatMul", ""),
        ("MatMul_12", ""),
        ("", ""),
        ("/", ""),
    ],
)
def test_the_scope_is_the_path_in_the_name(name, scope):
    assert node_scope(name, {}) == scope


@pytest.mark.parametrize(
    ("scopes", "scope"),
    [
        # As written by torch 2.13's dynamo exporter for MiniLM.
        ("['', 'model', 'model.encoder', 'model.encoder.layer.0', 'model.encoder.layer.0.output', 'linear_5']",
         "model/encoder/layer.0/output"),
        ("['', 'add']", ""),
        ("['', 'a', 'other.b', 'x']", "a/other.b"),
        ("['', 'a', 'a', 'a.b', 'x']", "a/b"),
    ],
)  # fmt: skip
def test_the_scope_is_what_the_dynamo_exporter_says(scopes, scope):
    assert node_scope("node_linear_5", {"pkg.torch.onnx.name_scopes": scopes}) == scope


@pytest.mark.parametrize("scopes", ["", "no list", "[", "[" * 5000, "[" + " " * 200_000 + "]", "[1, 2]", "['\\", "{}"])
def test_metadata_that_make_no_sense_fall_back_to_the_name(scopes):
    assert node_scope("/a/b", {"pkg.torch.onnx.name_scopes": scopes}) == "a"
