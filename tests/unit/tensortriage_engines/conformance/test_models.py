"""The conformance models: whole numbers that every format holds, answered by the ONNX package as the formulas say."""

import itertools

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tensortriage.values.dtype import DType
from tensortriage_engines.conformance.models import examples, small

EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_formula_gives_what_the_model_computes(example):
    session = ReferenceEvaluator(example.proto)
    onnx.checker.check_model(example.proto)
    for feed in example.feeds:
        expected = example.expected(feed)
        found = session.run(list(expected), dict(feed))
        assert list(expected) == [value.name for value in example.proto.graph.output]
        for (name, right), array in zip(expected.items(), found, strict=True):
            array = np.asarray(array)
            assert array.shape == right.shape, name
            assert array.tolist() == right.tolist(), name
            assert array.dtype == right.dtype or right.dtype == object, name


def test_feeds_fit_the_inputs_and_differ():
    for example in EXAMPLES:
        for feed in example.feeds:
            for value in example.proto.graph.input:
                array, declared = feed[value.name], value.type.tensor_type
                dims = [dim.dim_value or size for dim, size in zip(declared.shape.dim, array.shape, strict=True)]
                assert list(array.shape) == dims
                dtype = DType.STRING if array.dtype == object else DType.from_numpy(array.dtype)
                assert declared.elem_type == dtype.value
        outputs = [{n: a.tolist() for n, a in example.expected(feed).items()} for feed in example.feeds]
        assert all(one != other for one, other in itertools.combinations(outputs, 2))


def test_it_shows_which_of_two_operands_was_taken():
    (feed,) = next(example for example in EXAMPLES if example.name == "booleans").feeds
    assert np.all(feed["a"] != feed["b"])


def test_every_engine_must_support_the_core_and_names_are_unique():
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES)
    core = [example.name for example in EXAMPLES if example.core]
    assert core == [example.name for example in EXAMPLES][: len(core)]  # they come first
    assert {"mlp", "conv", "external-data", "dynamic-shapes", "hostile-names"} < set(core)
    assert {"if", "strings", "zero-size", "bfloat16", "stored-int4"}.isdisjoint(core)


def test_weights_lie_beside_the_model_where_that_is_the_point(tmp_path):
    paths = {example.name: example.save(tmp_path) for example in EXAMPLES}
    assert [path.name for path in tmp_path.glob("*.weights")] == ["external-data.weights"]
    loaded = onnx.load(paths["external-data"])
    assert [weight.name for weight in loaded.graph.initializer] == ["w1", "b1", "w2"]
    whole = {example.name: example.proto for example in EXAMPLES}
    assert not any(weight.external_data for weight in whole["external-data"].graph.initializer)  # a copy was written
    assert onnx.load(paths["mlp"]).graph == whole["mlp"].graph


def test_small_numbers_are_irregular():
    numbers = small(3, 4)
    assert numbers.dtype == np.float32
    assert set(numbers.ravel()) == {-1, 0, 1}
    assert not np.array_equal(small(12), small(12, start=1))
    assert numbers.ravel()[:6].tolist() == [-1, -1, 0, 0, 1, 1]  # 0, 3, 7, 10, 14, 17 modulo 3, less 1
