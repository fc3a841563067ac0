"""Which constant a stored weight is, in what order of axes, and which of its numbers are not the constant's."""

import numpy as np
import pytest

from tensortriage.compare.quantization.stored_weights import StoredWeight, placed

RNG = np.random.default_rng(3)
CONSTANTS = {
    "filter": RNG.standard_normal((6, 4, 3, 3)).astype(np.float32),
    "matrix": RNG.standard_normal((8, 12)).astype(np.float32),
    "other": RNG.standard_normal((8, 12)).astype(np.float32),
    "gru": RNG.standard_normal((2, 15, 7)).astype(np.float32),
    "none": np.zeros(5, np.float32),
}


def weight(array, axis=0, *, bits=8):
    rest = tuple(other for other in range(array.ndim) if other != axis)
    step = np.abs(array.astype(np.float64)).max(axis=rest, keepdims=True) / (2 ** (bits - 1) - 1)
    step = np.maximum(step, 1e-30)
    return StoredWeight(np.rint(array / step) * step, step)


@pytest.mark.parametrize(
    ("held", "name", "part"),
    [
        (CONSTANTS["filter"].reshape(6, -1), "filter", ()),
        (CONSTANTS["filter"].transpose(0, 2, 3, 1), "filter", ()),
        (CONSTANTS["other"].T, "other", ()),
        (CONSTANTS["gru"][1], "gru", (1,)),
        (CONSTANTS["gru"][1, 5:10].T, "gru", (1, 1, 3)),
        (CONSTANTS["none"], "none", ()),
    ],
)
def test_a_weight_is_found_by_its_numbers(held, name, part):
    ((found,),) = placed([weight(np.ascontiguousarray(held))], CONSTANTS)
    assert (found.view.name, found.view.part) == (name, part)
    assert np.array_equal(found.was, held)
    assert not found.steps_off.any()
    back = np.zeros_like(CONSTANTS[name])
    found.view.put(back, found.was)
    assert np.array_equal(found.view.of(back), found.view.of(CONSTANTS[name]))


def test_a_rescaled_weight_is_found_and_is_another():
    ((found,),) = placed([weight(CONSTANTS["matrix"] * 1.02)], CONSTANTS)
    assert found.view.name == "matrix"
    assert np.mean(found.steps_off > 0.0) > 0.3
    assert np.abs(found.rounded - CONSTANTS["matrix"]).max() <= np.abs(found.stored.numbers - CONSTANTS["matrix"]).max()


def test_a_weight_whose_numbers_moved_is_the_one_that_nothing_else_is_in_every_order():
    one, two = placed([weight(CONSTANTS["matrix"]), weight(np.roll(CONSTANTS["other"], 1))], CONSTANTS)
    assert [each.view.name for each in one] == ["matrix"]
    assert [(each.view.name, each.view.axes) for each in two] == [("other", (0, 1)), ("other", (1, 0))]


def test_another_networks_weight_is_none():
    assert placed([weight(RNG.standard_normal((9, 9))), weight(RNG.standard_normal((8, 12)))], CONSTANTS) == [(), ()]


def test_what_is_cut_off_at_the_end_of_the_range_is_rounded_so():
    array = CONSTANTS["matrix"].astype(np.float64)
    step = np.abs(array).max(axis=1, keepdims=True) / 140
    stored = StoredWeight(np.clip(np.rint(array / step), -127, 127) * step, step)
    ((found,),) = placed([stored], CONSTANTS)
    assert not found.steps_off.any()
