import itertools
import math

import numpy as np
import pytest

from tensortriage.engines.float64.kernels import Call, kernel_for
from unit.engines.float64.kernels.naive_windows import geometry, windows

SHAPES = [((2, 2, 8), [3]), ((1, 2, 6, 7), [2, 3]), ((1, 1, 4, 5, 4), [2, 2, 3])]
GRID = list(itertools.product(SHAPES, [1, 2, 3], [1, 2], [False, True], [False, True]))


def attributes(kernel, stride, dilation, ceil_mode, padded):
    rank = len(kernel)
    return {
        "kernel_shape": kernel,
        "strides": [stride] * rank,
        "dilations": [dilation] * rank,
        "ceil_mode": int(ceil_mode),
        "pads": [1] * rank + [0] * rank if padded else [0] * 2 * rank,
    }


def numbers(shape):
    return np.random.default_rng(5).permutation(math.prod(shape)).astype(np.float64).reshape(shape) - 7


def each_window(x, words):
    yield from windows(
        x, words["kernel_shape"], words["strides"], words["dilations"], words["pads"], words["ceil_mode"]
    )


def counts(x, words):
    return geometry(
        x.shape[2:], words["kernel_shape"], words["strides"], words["dilations"], words["pads"], words["ceil_mode"]
    )


@pytest.mark.parametrize(("shape", "stride", "dilation", "ceil_mode", "padded"), GRID)
def test_pools_are_their_definition(shape, stride, dilation, ceil_mode, padded):
    x, kernel = numbers(shape[0]), shape[1]
    words = attributes(kernel, stride, dilation, ceil_mode, padded)
    best, place_of = kernel_for("MaxPool")(Call("MaxPool", 22, (x,), words, 2))
    average = kernel_for("AveragePool")(Call("AveragePool", 22, (x,), words))
    padded_average = kernel_for("AveragePool")(Call("AveragePool", 22, (x,), {**words, "count_include_pad": 1}))
    norm = kernel_for("LpPool")(Call("LpPool", 22, (x,), {**words, "p": 1}))
    assert best.shape == average.shape == norm.shape == (*x.shape[:2], *counts(x, words))
    rank = len(kernel)
    for (n, c), (place, taps) in itertools.product(np.ndindex(*x.shape[:2]), list(each_window(x, words))):
        index = (n, c, *place)
        inside = [where for _, where, _ in taps if where is not None]
        seen = [x[(n, c, *where)] for where in inside]
        assert best[index] == max(seen)
        assert x.reshape(-1)[place_of[index]] == max(seen)
        assert average[index] == pytest.approx(sum(seen) / len(seen), rel=1e-15)
        # Padding counts as zeros, what ceil mode reaches beyond it does not count.
        ends = [x.shape[2 + i] + words["pads"][rank + i] for i in range(rank)]
        counted = sum(all(w < end for w, end in zip(where, ends, strict=True)) for _, _, where in taps)
        assert padded_average[index] == pytest.approx(sum(seen) / counted, rel=1e-15)
        assert norm[index] == sum(map(abs, seen))


def test_maximum_of_integers_and_column_major_places():
    x = np.array([[[[1, 5], [7, 3]]]], np.int8)
    best, place = kernel_for("MaxPool")(Call("MaxPool", 12, (x,), {"kernel_shape": [2, 2], "storage_order": 1}, 2))
    assert best.dtype == np.int8
    assert (best.item(), place.item()) == (7, 1)  # row 1, column 0: index 1 when columns are counted first


def test_global_pools():
    x = numbers((2, 3, 4, 5))
    flat = x.reshape(2, 3, -1)
    for op_type, expected in {
        "GlobalMaxPool": flat.max(-1),
        "GlobalAveragePool": flat.mean(-1),
        "GlobalLpPool": np.sqrt((flat**2).sum(-1)),
    }.items():
        found = kernel_for(op_type)(Call(op_type, 22, (x,), {}))
        assert found.shape == (2, 3, 1, 1)
        assert found.ravel() == pytest.approx(expected.ravel(), rel=1e-14)
