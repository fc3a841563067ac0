"""Poolings at the border; expected values are written out."""

import numpy as np

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.pools import POOLS


def test_a_maximum_whose_border_is_0():
    x = np.full((1, 1, 2, 2), -1, np.float32)
    one = model("g (float[1,1,2,2] x) => (float[1,1,2,2] y) { y = MaxPool<kernel_shape=[2,2], pads=[0,0,1,1]>(x) }")
    assert run(meant(one, POOLS, "border"), x=x).ravel().tolist() == [-1, 0, 0, 0]


def test_windows_beyond_the_border_are_divided_by_all_of_the_kernel():
    """Five numbers by windows of two, two apart: the last window holds one and nothing."""
    one = model(
        "g (float[1,1,5] x) => (float[1,1,3] y) { y = AveragePool<kernel_shape=[2], strides=[2], ceil_mode=1>(x) }",
        opset=22,
    )
    x = np.array([[[2, 4, 6, 8, 10]]], np.float32)
    assert run(one, x=x).ravel().tolist() == [3, 7, 10]
    assert run(meant(one, POOLS, "size of its kernel"), x=x).ravel().tolist() == [3, 7, 5]


def test_the_end_of_a_padding_is_not_counted():
    one = model(
        "g (float[1,1,4] x) => (float[1,1,4] y) "
        "{ y = AveragePool<kernel_shape=[3], pads=[1,1], count_include_pad=1>(x) }"
    )
    x = np.array([[[3, 6, 9, 12]]], np.float32)
    assert run(one, x=x).ravel().tolist() == [3, 6, 9, 7]
    assert run(meant(one, POOLS, "the end of its padding"), x=x).ravel().tolist() == [3, 6, 9, 10.5]


def test_room_at_the_end_of_a_padding_is_not_counted():
    """The last window holds 18, a 0 that counts, and room: the numbers are those of PyTorch's avg_pool1d."""
    one = model(
        "g (float[1,1,6] x) => (float[1,1,4] y) "
        "{ y = AveragePool<kernel_shape=[3], strides=[2], pads=[1,2], count_include_pad=1>(x) }"
    )
    x = np.array([[[3, 6, 9, 12, 15, 18]]], np.float32)
    assert run(one, x=x).ravel().tolist() == [3, 9, 15, 6]
    room = run(meant(one, POOLS, "more at the end"), x=x)
    assert room.ravel().tolist() == [3, 9, 15, 9]


def test_windows_that_begin_in_the_padding_step_from_0():
    """Of window 0, at -2, 0 and 2 are left of -2, 0, 2; of window 1, at -1, 1 and 3 become 0 and 2."""
    one = model(
        "g (float[1,1,9] x) => (float[1,1,9] y) { y = MaxPool<kernel_shape=[3], dilations=[2], pads=[2,2]>(x) }"
    )
    x = np.float32([3, 9, 1, 8, 2, 7, 4, 6, 5]).reshape(1, 1, 9)
    expected = run(one, x=x)
    expected[..., 0], expected[..., 1] = max(3, 1), max(3, 1)
    found = run(meant(one, POOLS, "begin in the padding of axis 2"), x=x)
    assert found.tolist() == expected.tolist()
    assert run(one, x=x)[0, 0, 1] == 9
