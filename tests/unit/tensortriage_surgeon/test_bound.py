import numpy as np
import pytest

import models
import running
from tensortriage.errors import UsageError
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.bound_sizes import unbounded_sizes
from tensortriage_surgeon.bound import bound

COUNTING = """
    g (float[3] x, int64 n) => (int64[M] y, int64 z) <int64 zero = {0}, int64 one = {1}> {
        [big] b = ReduceMax <keepdims = 0> (x) [limit] l = Cast <to = 7> (b) [count] y = Range(zero, l, one)
        [more] z = Add(l, n)
    }"""


def bounded(text, bounds):
    model = models.parse(text)
    return model, bound(model, bounds, specs=value_specs(model))


def test_nothing_downstream_sees_more_than_the_bound():
    model, result = bounded(COUNTING, {"l": 4})
    assert [node.op_type for node in result.graph.nodes] == ["ReduceMax", "Cast", "Min", "Range", "Add"]
    assert result.graph.node("limit").outputs == ("unbounded::l",)
    assert result.graph.node("min::l").outputs == ("l",)
    for largest in (2.0, 9.0):
        feed = {"x": np.array([1, largest, 0], np.float32), "n": np.array(5)}
        found = running.run(result, feed)
        np.testing.assert_array_equal(found["y"], np.arange(min(largest, 4)))
        assert found["z"] == min(largest, 4) + 5
    assert "Min" not in {node.op_type for node in model.graph.nodes}


def test_what_is_bounded_is_no_longer_listed():
    model, result = bounded(COUNTING, {"l": 4})
    assert [size.value for size in unbounded_sizes(model.graph)] == ["l"]
    assert unbounded_sizes(result.graph) == ()


def test_an_output_keeps_its_name_and_an_input_its_place():
    _, result = bounded(COUNTING, {"z": 3, "n": 1})
    assert [spec.name for spec in result.inputs] == ["x", "n"]
    assert [spec.name for spec in result.outputs] == ["y", "z"]
    assert result.graph.node("more").inputs == ("l", "bounded::n")
    feed = {"x": np.array([1, 2, 0], np.float32), "n": np.array(50)}
    assert running.run(result, feed)["z"] == 3


def test_old_opsets_are_raised_to_one_with_an_integer_min():
    text = COUNTING.replace("g (", '<ir_version: 7, opset_import: ["": 11]> g (', 1)
    _, result = bounded(text, {"l": 4})
    assert result.opset == 12
    found = running.run(result, {"x": np.array([7.0, 0, 0], np.float32), "n": np.array(0)})
    assert found["y"].shape == (4,)


@pytest.mark.parametrize(("name", "slug"), [("nothing", "value-unknown"), ("one", "value-constant")])
def test_what_cannot_be_bounded_is_an_error(name, slug):
    with pytest.raises(UsageError) as caught:
        bounded(COUNTING, {name: 4})
    assert caught.value.slug == slug
