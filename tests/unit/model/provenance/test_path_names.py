import pytest

from tensortriage.model.provenance.path_names import common_module, common_pattern, module_of_name, modules_matching

MODULES = ("encoder.layer.0.mlp", "encoder.layer.0.mlp.act", "encoder.layer.1.mlp.act", "encoder.layer.10", "head")


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("/encoder/layer.3/MatMul", "encoder.layer.3"),
        ("encoder/layer.3/MatMul", "encoder.layer.3"),
        ("/layer1/layer1.0/conv1/Conv", "layer1.0.conv1"),  # torchvision's ResNet, older exporter
        ("/features/features.0/features.0.0/Conv", "features.0.0"),
        ("StatefulPartitionedCall/model_1/dense/MatMul", "model_1.dense"),  # tf2onnx of a saved model
        ("functional_1/conv2d_1/convolution", "functional_1.conv2d_1"),  # Keras 3
        ("model/conv/Relu;model/conv/BiasAdd", "model.conv"),  # TFLite
        ("/MatMul", ""),
        ("MatMul_12", ""),
        ("", ""),
        ("/", ""),
    ],
)
def test_the_module_is_the_path_in_the_name(name, module):
    assert module_of_name(name) == module


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("encoder.layer.0", MODULES[:2]),
        ("/encoder/layer.0/", MODULES[:2]),
        ("encoder.layer.1", MODULES[2:3]),  # not layer.10
        ("encoder.layer.*.act", MODULES[1:3]),
        ("encoder.layer.?.mlp", MODULES[:3]),
        ("head", MODULES[4:]),
        ("tail", ()),
        ("", ()),
        ("/", ()),
    ],
)
def test_what_a_pattern_means(pattern, found):
    assert modules_matching(pattern, MODULES) == set(found)


@pytest.mark.parametrize(
    ("modules", "pattern"),
    [
        (["a.0.b", "a.1.b", "a.11.b"], "a.*.b"),
        (["a.0", "a.1"], "a.*"),
        (["a.b", "a.b"], "a.b"),
        (["a", "b"], ""),
        (["a.b", "a.b.c"], ""),
        ([], ""),
    ],
)
def test_what_copies_have_in_common(modules, pattern):
    assert common_pattern(modules) == pattern


@pytest.mark.parametrize(
    ("modules", "module"),
    [(["a.b.c", "a.b"], "a.b"), (["a.b", "a.bc"], "a"), (["a", "b"], ""), (["a.b", ""], ""), ([], "")],
)
def test_the_innermost_common_module(modules, module):
    assert common_module(modules) == module
