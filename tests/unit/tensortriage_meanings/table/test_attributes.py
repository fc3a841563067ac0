"""Which attributes are tried, in which order, and where."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.attributes import ATTRIBUTES


def words(text, opset=17):
    return [way.words for ways in sites_of(Rewriter(model(text, opset=opset)), ATTRIBUTES) for way in ways.values()]


def test_single_attributes_come_before_several_and_none_is_what_is_there():
    found = words(
        'g (float[1,1,4,4] x, float[4] s) => (float[1,1,8,8] y) { y = Resize<mode="nearest", '
        'coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , s) }'
    )
    assert found[0] == "nearest_mode were round_prefer_floor, not floor"
    both = [" and " in each for each in found if "mode were linear" not in each and "mode were cubic" not in each]
    assert both == sorted(both)
    assert not any(
        each.startswith(("nearest_mode were floor", "coordinate_transformation_mode were asym")) for each in found
    )


def test_an_older_resize_is_asked_about_as_a_later_one():
    found = words("g (float[1,1,4,4] x, float[4] s) => (float[1,1,8,8] y) { y = Upsample(x, s) }", opset=9)
    assert "coordinate_transformation_mode were half_pixel, not asymmetric" in found


def test_pads_are_moved_at_the_same_size_or_the_next():
    found = words(
        "g (float[1,1,6,6] x) => (float[1,1,3,3] y) { "
        "y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x) }"
    )
    assert "pads were [0, 0, 1, 1], not [1, 1, 1, 1]" in found
    assert not [each for each in found if "-1" in each]


def test_pads_are_read_as_pairs_by_axis_in_both_orders():
    found = words("g (float[1,1,9,9] x, float[1,1,3,3] w) => (float[1,1,a,b] y) { y = Conv<pads=[3,0,1,2]>(x, w) }")
    # top, left, bottom, right of ONNX taken for top, bottom, left, right, and for left, right, top, bottom
    assert "pads were [3, 1, 0, 2], not [3, 0, 1, 2]" in found
    assert "pads were [1, 3, 2, 0], not [3, 0, 1, 2]" in found


def test_axes_are_moved_only_where_the_sizes_stay():
    text = "g (float[2,{},4] x) => (float[2,4,{}] y) {{ y = Transpose<perm=[0,2,1]>(x) }}"
    assert words(text.format(4, 4)) == ["perm were [0, 1, 2], not [0, 2, 1]"]
    assert words(text.format(3, 3)) == []


def test_epsilons_are_told_as_numbers():
    text = """g (float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization(x, s) }"""
    assert "epsilon were 0.001, not 1e-05" in words(text)


@pytest.mark.parametrize(("words", "alpha"), [("not divided", 0.5), ("twice", 0.02)])
def test_an_lrn_whose_alpha_is_not_divided_by_its_size(words, alpha):
    """The formula of ONNX: x / (bias + alpha / size * sum of squares) ^ beta, of one channel here."""
    one = model("g (float[1,1,1,3] x) => (float[1,1,1,3] y) { y = LRN<size=5, alpha=0.1, beta=1.0, bias=1.0>(x) }")
    x = np.array([[[[1, 2, -3]]]], np.float32)
    assert run(one, x=x) == pytest.approx(x / (1 + 0.1 / 5 * x**2), rel=1e-5)
    assert run(meant(one, ATTRIBUTES, words), x=x) == pytest.approx(x / (1 + alpha / 5 * x**2), rel=1e-5)
