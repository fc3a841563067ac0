"""Which tensor of a file is which of the model's, and how its axes lie: told by names, types, shapes, or the user."""

import numpy as np
import pytest

from tensortriage.errors import BuildFailed, UsageError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_engines.arrangement import arrangements, only


def spec(name, *shape, dtype="float32"):
    return ValueSpec(name, DType.parse(dtype), shape)


def found(declared, held, outputs=(("y", 1, 5),), held_outputs=(("y", 1, 5),), **options):
    sides = [[spec(*row) if isinstance(row, tuple) else row for row in side] for side in (declared, outputs)]
    files = [[spec(*row) if isinstance(row, tuple) else row for row in side] for side in (held, held_outputs)]
    return arrangements(tuple(sides), tuple(files), options)


def test_channels_are_moved_and_not_reshaped():
    (way,) = found([("x", 1, 2, 3, 4)], [("x", 1, 3, 4, 2)], [("y", 1, 2, 3)], [("y", 1, 3, 2)])
    x, y = np.arange(24.0).reshape(1, 2, 3, 4), np.arange(6.0).reshape(1, 3, 2)
    np.testing.assert_array_equal(way.feed({"x": x})["x"], np.moveaxis(x, 1, -1))
    np.testing.assert_array_equal(way.results({"y": y})["y"], np.moveaxis(y, -1, 1))
    assert way.options == {"layout": "x:nhwc+y:nwc"}
    assert way.words == "'x' with axes nhwc, 'y' with axes nwc"


def test_a_result_of_another_size_stays_as_it_is_and_is_told_by_who_compares():
    (way,) = found([("x", 1, 8)], [("x", 1, 8)], [("y", 1, 5, 2)], [("y", 1, 5, 2)])
    assert way.results({"y": np.zeros((5, 512))})["y"].shape == (5, 512)


def test_an_axis_of_one_entry_moves_nothing():
    (way,) = found([("x", 1, 1, 8, 8)], [("x", 1, 8, 8, 1)])
    assert (way.words, way.options, way.evident) == ("", {}, True)


def test_names_then_types_then_shapes_then_places_tell_tensors_apart():
    tokens, mask = spec("ids", 1, 8, dtype="int64"), spec("mask", 1, 8)
    (way,) = found(
        [tokens, mask, ("p", 1, 9), ("/q", 1, 8)],
        [("serving_default_p:0", 1, 9), ("wa/q", 1, 8), ("b", 1, 8), spec("a", 1, 8, dtype="int32")],
    )
    held = {each.spec.name: each.held.name for each in way.inputs}
    assert held == {"ids": "a", "mask": "b", "p": "serving_default_p:0", "/q": "wa/q"}
    first, second = found([("r", 1, 8), ("s", 1, 8)], [("in0", 1, 8), ("in1", 1, 8)])
    assert first.options == {"names": "r:in0+s:in1"}
    assert second.options == {"names": "r:in1+s:in0"}


def test_the_file_may_lack_inputs_that_nothing_uses_but_no_output():
    (way,) = found([("a", 1, 2), ("b", 1, 3)], [("z", 1, 3)])
    assert [each.spec.name for each in way.inputs] == ["b"]
    with pytest.raises(BuildFailed, match=r"the outputs 'z' \[1, 5\], which match the model's in no order") as caught:
        found([("a", 1, 2)], [("a", 1, 2)], [("y", 1, 5), ("w", 1, 5)], [("z", 1, 5)])
    assert caught.value.slug == "file-mismatch"


def test_what_is_not_evident_is_asked_for():
    assert only(found([("x", 1, 4, 4, 4)], [("x", 1, 4, 4, 4)])).inputs[0].order == "nchw"
    several = found([("r", 1, 8), ("s", 1, 8)], [("in0", 1, 8), ("in1", 1, 8)])
    with pytest.raises(UsageError, match="in 2 ways") as caught:
        only(several)
    assert caught.value.slug == "layout-unknown"
    assert "names=r:in0+s:in1 or names=r:in1+s:in0" in caught.value.cure


@pytest.mark.parametrize(
    ("options", "order"),
    [({"layout": "nhwc"}, "nhwc"), ({"layout": "x:NHWC"}, "nhwc"), ({"layout": "x:0213"}, "nhcw")],
)
def test_the_user_may_say_it(options, order):
    (way,) = found([("x", 1, 4, 4, 4)], [("x", 1, 4, 4, 4)], **options)
    assert way.inputs[0].order == order
    (way,) = found([("r", 1, 8), ("s", 1, 8)], [("in0", 1, 8), ("in1", 1, 8)], names="r:in1")
    assert [each.held.name for each in way.inputs] == ["in1", "in0"]


@pytest.mark.parametrize("options", [{"layout": "z:nhwc"}, {"layout": "nhwx"}, {"names": "z:in0"}])
def test_words_that_say_nothing_of_the_model_are_refused(options):
    with pytest.raises(UsageError) as caught:
        found([("x", 1, 4, 4, 4)], [("x", 1, 4, 4, 4)], **options)
    assert caught.value.slug == "engine-option-value"


def test_more_ways_than_can_be_tried_are_asked_for():
    names = [f"n{i}" for i in range(5)]
    with pytest.raises(UsageError, match="more than 24 ways"):
        found([(n, 1, 8) for n in names], [(f"in{n}", 1, 8) for n in names])
