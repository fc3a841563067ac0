"""Expected values are written out, or the same rearrangement in numpy's own words; ONNX's operator texts say which."""

import numpy as np
import pytest

from kernel_calls import run
from tensortriage.values.dtype import DType

X = np.arange(12.0).reshape(3, 4)
LINE = np.arange(5.0)
IMAGE = np.arange(32.0).reshape(2, 4, 2, 2)


@pytest.mark.parametrize(
    ("shape", "given", "attributes"),
    [
        ((4, 3), [4, 3], {}),
        ((3, 2, 2), [0, -1, 2], {}),
        ((12,), [-1], {}),
    ],
)
def test_reshape(shape, given, attributes):
    for found in (run("Reshape", X, given, **attributes), run("Reshape", X, version=1, shape=given)):
        np.testing.assert_array_equal(found, X.reshape(shape))


def test_reshape_of_nothing():
    nothing = np.zeros((2, 0, 3))
    assert run("Reshape", nothing, [0, 0, -1]).shape == (2, 0, 0)  # the size that -1 stands for is free
    assert run("Reshape", nothing, [3, 0], allowzero=1).shape == (3, 0)
    assert run("Reshape", np.zeros((0, 2)), [4, -1]).shape == (4, 0)


@pytest.mark.parametrize(("attributes", "shape"), [({}, (2, 16)), ({"axis": 0}, (1, 32)), ({"axis": -1}, (16, 2))])
def test_flatten(attributes, shape):
    np.testing.assert_array_equal(run("Flatten", IMAGE, **attributes), IMAGE.reshape(shape))


def test_axes_are_moved_dropped_and_put_in():
    assert run("Transpose", IMAGE).shape == (2, 2, 4, 2)
    np.testing.assert_array_equal(run("Transpose", X, perm=[1, 0]), X.T)
    ones = X.reshape(1, 3, 1, 4)
    assert run("Squeeze", ones).shape == (3, 4)
    assert run("Squeeze", ones, [0]).shape == run("Squeeze", ones, version=11, axes=[0]).shape == (3, 1, 4)
    assert run("Unsqueeze", X, [0, -1]).shape == (1, 3, 4, 1)
    with pytest.raises(ValueError, match="size not equal to one"):
        run("Squeeze", X, [0])


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ({"inputs": [[1, 4]]}, [1, 4]),
        ({"asked": {"num_outputs": 2}}, [3, 2]),
        ({"asked": {"num_outputs": 4}}, [2, 2, 1, 0]),
        ({"asked": {"outputs": 5}}, [1] * 5),
    ],
)
def test_split(given, sizes):
    parts = run("Split", LINE, *given.get("inputs", ()), **given.get("asked", {}))
    assert [len(part) for part in parts] == sizes
    assert np.concatenate(parts).tolist() == LINE.tolist()
    assert [part.shape for part in run("Split", X, [1, 3], axis=1)] == [(3, 1), (3, 3)]


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (1, 99, 2, [1, 3]),
        (-2, 99, 1, [3, 4]),
        (-99, 2, 1, [0, 1]),
        (0, -9, 1, []),
        (99, -99, -2, [4, 2, 0]),
        (3, 0, -1, [3, 2, 1]),
        (-99, -99, -1, [0]),  # a start before the first element is the first element
    ],
)
def test_slice(start, end, step, expected):
    assert run("Slice", LINE, [start], [end], [0], [step]).tolist() == expected


def test_slice_of_some_axes():
    np.testing.assert_array_equal(run("Slice", X, [1], [3], [-1]), X[:, 1:3])
    np.testing.assert_array_equal(run("Slice", X, [1, 2], [3, 4]), X[1:3, 2:4])
    np.testing.assert_array_equal(run("Slice", X, version=9, starts=[1], ends=[2]), X[1:2])
    assert run("Slice", np.zeros((0, 2)), [5], [-9], [0], [-1]).shape == (0, 2)


def test_join_and_repeat():
    np.testing.assert_array_equal(run("Concat", X, X + 1, axis=0), np.vstack([X, X + 1]))
    assert run("Concat", X, X, version=1).shape == (3, 8)  # the axis of operator set 1
    assert run("Expand", np.ones((3, 1)), [2, 1, 4]).shape == (2, 3, 4)
    assert run("Expand", X, [1]).shape == (3, 4)
    np.testing.assert_array_equal(run("Tile", X, [1, 2]), np.hstack([X, X]))


def test_sizes_are_int64():
    assert run("Shape", IMAGE).tolist() == [2, 4, 2, 2]
    assert run("Shape", IMAGE, start=1, end=-1).tolist() == [4, 2]
    assert run("Size", IMAGE) == 32
    assert run("Shape", X).dtype == run("Size", X).dtype == np.int64


def test_tensors_are_made():
    made = run("Constant", value_floats=(1.5, 2.0))
    assert (made.dtype, made.tolist()) == (np.float64, [1.5, 2])
    assert run("Constant", value=np.array([1], np.float16)).dtype == np.float64
    assert run("Constant", value_int=3).dtype == np.int64
    assert run("Constant", value_strings=("a", "b")).tolist() == ["a", "b"]
    assert run("ConstantOfShape", [2, 1]).tolist() == [[0], [0]]
    assert run("ConstantOfShape", [2], value=np.array([7], np.int32)).tolist() == [7, 7]
    assert run("Range", 1.0, 2.0, 0.4).tolist() == [1.0, 1.4, 1.8]
    assert run("Range", 5, 1, -2).tolist() == [5, 3]
    assert run("Range", 1, 0, 1).tolist() == []
    assert run("EyeLike", X, k=1).tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert run("EyeLike", np.zeros((2, 2), np.int32)).dtype == np.int32
    assert run("EyeLike", X, dtype=DType.INT8.value).dtype == np.int8


@pytest.mark.parametrize(
    ("inputs", "attributes", "expected"),
    [
        (([1, 2],), {}, [0, 0, 1, 2, 3, 4, 0, 0]),
        (([1, 0], 7.0), {}, [7, 0, 1, 2, 3, 4]),
        (([-1, 2],), {}, [1, 2, 3, 4, 0, 0]),
        (([1, -2],), {}, [0, 0, 1, 2]),
        (([2, 1],), {"mode": "reflect"}, [2, 1, 0, 1, 2, 3, 4, 3]),
        (([1, 1],), {"mode": "edge"}, [0, 0, 1, 2, 3, 4, 4]),
        (([1, 1],), {"mode": "wrap"}, [4, 0, 1, 2, 3, 4, 0]),
        ((), {"version": 2, "pads": [1, 0], "value": 9.0}, [9, 0, 1, 2, 3, 4]),
    ],
)
def test_pad(inputs, attributes, expected):
    assert run("Pad", LINE, *inputs, **attributes).tolist() == expected


def test_pad_of_some_axes():
    np.testing.assert_array_equal(run("Pad", X, [1, 2], None, [-1]), np.pad(X, ((0, 0), (1, 2))))


def test_depth_and_space():
    """The first element of each block comes from the first channels (DCR) or from the first of each group (CRD)."""
    assert run("DepthToSpace", IMAGE, blocksize=2).shape == (2, 1, 4, 4)
    assert run("DepthToSpace", IMAGE, blocksize=2)[0, 0, :2, :2].tolist() == [[0, 4], [8, 12]]
    eight = np.arange(8.0).reshape(1, 8, 1, 1)
    assert run("DepthToSpace", eight, blocksize=2).ravel().tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert run("DepthToSpace", eight, blocksize=2, mode="CRD").ravel().tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    for mode in ("DCR", "CRD"):
        there = run("DepthToSpace", IMAGE, blocksize=2, mode=mode)
        np.testing.assert_array_equal(run("SpaceToDepth", there, blocksize=2, mode=mode), IMAGE)


def test_triangles():
    np.testing.assert_array_equal(run("Trilu", X), np.triu(X))
    np.testing.assert_array_equal(run("Trilu", X, 1), np.triu(X, 1))
    np.testing.assert_array_equal(run("Trilu", X, -1, upper=0), np.tril(X, -1))
    np.testing.assert_array_equal(run("Trilu", X, np.array([1])), np.triu(X, 1))


def test_sequences_are_reversed_each_by_its_length():
    found = run("ReverseSequence", X, [1, 3, 2], time_axis=1, batch_axis=0)
    assert found.tolist() == [[0, 1, 2, 3], [6, 5, 4, 7], [9, 8, 10, 11]]
    assert run("ReverseSequence", X, [2, 1, 3, 2])[:, 0].tolist() == [4, 0, 8]  # time is axis 0 by default


def test_crop_and_pad_around_the_centre():
    assert run("CenterCropPad", LINE, [2]).tolist() == [1, 2]
    assert run("CenterCropPad", LINE, [8]).tolist() == [0, 0, 1, 2, 3, 4, 0, 0]
    np.testing.assert_array_equal(run("CenterCropPad", X, [2], axes=[1]), X[:, 1:3])
    np.testing.assert_array_equal(run("CenterCropPad", X, [3, 4]), X)
