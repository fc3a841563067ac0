"""Expected values are written out, or come from the loops of ONNX's operator texts."""

import itertools

import numpy as np
import pytest

from kernel_calls import run

X = np.array([[3.0, 1, 2], [6, 9, 5]])
CUBE = np.arange(24.0).reshape(2, 3, 4)


def test_gather_counts_from_either_end():
    assert run("Gather", X, [1, -2]).tolist() == [X[1].tolist(), X[0].tolist()]
    np.testing.assert_array_equal(run("Gather", X, [[0, -1]], axis=1), X[:, [[0, 2]]])
    assert run("Gather", X, np.int64(1)).shape == (3,)
    assert run("Gather", X, np.uint8([1])).tolist() == [X[1].tolist()]


@pytest.mark.parametrize("index", [2, -3])
@pytest.mark.parametrize(
    ("op_type", "more"), [("Gather", ()), ("GatherElements", ()), ("GatherND", ()), ("ScatterND", ([X[0]],))]
)
def test_an_index_outside_is_refused(op_type, more, index):
    indices = [[index]] if op_type != "Gather" else [index]
    with pytest.raises(IndexError, match=r"outside \[-2, 2\)"):
        run(op_type, X, indices, *more)


@pytest.mark.parametrize(("axis", "indices"), [(0, [[1, 0, -1]]), (1, [[0, -1], [2, 2]])])
def test_elements_are_gathered_and_scattered_along_an_axis(axis, indices):
    indices, scattered = np.asarray(indices), X.copy()
    found, updates = (
        run("GatherElements", X, indices, axis=axis),
        100.0 + np.arange(indices.size).reshape(indices.shape),
    )
    for place in itertools.product(*map(range, indices.shape)):
        there = list(place)
        there[axis] = indices[place]
        assert found[place] == X[tuple(there)]
        scattered[tuple(there)] = updates[place]
    np.testing.assert_array_equal(run("ScatterElements", X, indices, updates, axis=axis), scattered)


def test_tuples_are_gathered_with_batches():
    assert run("GatherND", CUBE, [[0, 1], [1, -1]]).tolist() == [CUBE[0, 1].tolist(), CUBE[1, 2].tolist()]
    assert run("GatherND", CUBE, [[0, 1, 2]]).tolist() == [6]
    found = run("GatherND", CUBE, [[[2], [0]], [[1], [1]]], batch_dims=1)
    np.testing.assert_array_equal(found, np.stack([CUBE[0, [2, 0]], CUBE[1, [1, 1]]]))


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("none", [1, 5, 3, 4]),
        ("add", [1, 9, 3, 4]),
        ("mul", [1, 20, 3, 4]),
        ("max", [1, 5, 3, 4]),
        ("min", [1, 2, 3, 4]),
    ],
)
def test_what_is_scattered_twice_is_reduced(reduction, expected):
    line = np.array([1.0, 2, 3, 4])
    updates = [2.0, 5.0]  # both to place 1
    assert run("ScatterND", line, [[1], [1]], updates, reduction=reduction).tolist() == expected
    assert run("ScatterElements", line, [1, -3], updates, reduction=reduction).tolist() == expected
    assert line.tolist() == [1, 2, 3, 4]


def test_a_cache_is_written_from_each_rows_index_on():
    cache, update = np.zeros((2, 4, 1)), np.array([[[1.0], [2]], [[3], [4]]])
    assert run("TensorScatter", cache, update, [1, 2])[..., 0].tolist() == [[0, 1, 2, 0], [0, 0, 3, 4]]
    assert run("TensorScatter", cache, update)[..., 0].tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]
    circular = run("TensorScatter", cache, update, [3, 0], mode="circular")
    assert circular[..., 0].tolist() == [[2, 0, 0, 1], [3, 4, 0, 0]]
    with pytest.raises(IndexError):
        run("TensorScatter", cache, update, [3, 0])
    turned = run("TensorScatter", np.moveaxis(cache, 1, 2), np.moveaxis(update, 1, 2), [1, 2], axis=2)
    assert turned[:, 0].tolist() == [[0, 1, 2, 0], [0, 0, 3, 4]]
    assert not cache.any()


def test_one_hot():
    assert run("OneHot", [0, 2, -1, 5, -4], 3, [7.0, 9.0]).tolist() == [
        [9, 7, 7], [7, 7, 9], [7, 7, 9], [7, 7, 7], [7, 7, 7],
    ]  # fmt: skip
    assert run("OneHot", [0, 2], [3], [0, 1], axis=0).tolist() == [[1, 0], [0, 0], [0, 1]]


def test_places_that_are_not_zero():
    assert run("NonZero", [[1, 0], [2, 3]]).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert run("NonZero", 5.0).tolist() == [[0]]
    assert run("NonZero", np.zeros((2, 2))).shape == (2, 0)
    assert run("NonZero", [1]).dtype == np.int64


def test_compress():
    assert run("Compress", X, [False, True], axis=0).tolist() == [X[1].tolist()]
    assert run("Compress", X, [True, False, False, True]).tolist() == [3, 6]


def test_unique_sorted_or_as_they_came():
    line = [2.0, 1, 2, 3, 1]
    assert [x.tolist() for x in run("Unique", line, outputs=4)] == [[1, 2, 3], [1, 0, 3], [1, 0, 1, 2, 0], [2, 2, 1]]
    found = run("Unique", line, outputs=4, sorted=0)
    assert [x.tolist() for x in found] == [[2, 1, 3], [0, 1, 3], [0, 1, 0, 2, 1], [2, 2, 1]]
    assert all(x.dtype == np.int64 for x in found[1:])
    rows = run("Unique", [[3, 1], [1, 2], [3, 1]], outputs=3, sorted=0, axis=0)
    assert [x.tolist() for x in rows] == [[[3, 1], [1, 2]], [0, 1], [0, 1, 0]]
    assert len(run("Unique", line)) == 1


def test_the_first_of_equals_comes_first():
    line = [1.0, 3, 3, 2, 1]
    for attributes, values, places in (({}, [3, 3, 2], [1, 2, 3]), ({"largest": 0}, [1, 1, 2], [0, 4, 3])):
        found, where = run("TopK", line, [3], **attributes)
        assert (found.tolist(), where.tolist()) == (values, places)
        assert where.dtype == np.int64
    found, where = run("TopK", X, version=1, k=1, axis=0)
    assert (found.tolist(), where.tolist()) == ([[6, 9, 5]], [[1, 1, 1]])


@pytest.mark.parametrize(("op_type", "first", "last"), [("ArgMax", [1, 0], [2, 0]), ("ArgMin", [0, 1], [3, 3])])
def test_the_place_of_the_largest_is_the_first_or_last_one(op_type, first, last):
    x = np.array([[1.0, 5, 5, 1], [4, 2, 3, 2]])
    assert run(op_type, x, axis=1, keepdims=0).tolist() == first
    assert run(op_type, x, axis=1, keepdims=0, select_last_index=1).tolist() == last
    assert run(op_type, x).shape == (1, 4)
    assert run(op_type, x).dtype == np.int64
