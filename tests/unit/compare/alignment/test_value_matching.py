"""Tensors recognised by their values: what rounding, order and factors leave, and what must not be matched."""

import ml_dtypes
import numpy as np
import pytest

from tensortriage.compare.alignment.tensor_fingerprint import fingerprint
from tensortriage.compare.alignment.value_matching import Relation, match
from tensortriage.errors import UsageError

RNG = np.random.default_rng(0)
ONE, OTHER, THIRD = (RNG.standard_normal((8, 24)).astype(np.float32) for _ in range(3))


def prints(**arrays):
    return {name: fingerprint(np.asarray(array)) for name, array in arrays.items()}


def only(reference, target):
    found = match(reference, target)
    (made,) = found.values()
    return made


@pytest.mark.parametrize(
    ("array", "relation", "scale"),
    [
        (ONE.astype(ml_dtypes.bfloat16), Relation.EQUAL, 1.0),
        (ONE.reshape(4, 48), Relation.RESHAPED, 1.0),
        (ONE.T, Relation.TRANSPOSED, 1.0),
        (RNG.permutation(ONE.reshape(-1)).reshape(ONE.shape), Relation.REORDERED, 1.0),
        (3.0 * ONE, Relation.EQUAL, 3.0),
        (-ONE, Relation.EQUAL, -1.0),
    ],
    ids=["rounded", "reshaped", "transposed", "reordered", "scaled", "negative"],
)
def test_a_tensor_is_recognised_through_what_engines_do_to_it(array, relation, scale):
    made = only(prints(one=ONE, other=OTHER, third=THIRD), prints(x=array))
    assert (made.target, made.reference, made.relation) == ("x", "one", relation)
    assert made.scale == pytest.approx(scale, rel=1e-4)


def test_a_tensor_that_the_reference_lacks_has_no_match():
    found = match(prints(one=ONE, other=OTHER), prints(x=ONE, y=THIRD))
    assert [(name, made.target, made.reference) for name, made in found.items()] == [("x", "x", "one")]


def test_equal_tensors_of_the_reference_are_told_together_and_what_says_nothing_apart():
    found = match(prints(one=ONE, copy=ONE.copy(), other=OTHER), prints(x=ONE, zeros=np.zeros((8, 24))))
    (made,) = found.values()
    assert {made.reference, *made.aliases} == {"one", "copy"}
    assert found["x"] is made


def test_two_tensors_that_differ_by_as_much_as_rounding_are_not_told_apart():
    """Both candidates are as far from the target as its own error: neither may be chosen."""
    near = ONE + 1e-2 * OTHER
    target = ONE + 0.5e-2 * OTHER + 1e-2 * THIRD
    found = match(prints(one=ONE, near=near), prints(x=target))
    assert found == {}


@pytest.mark.parametrize("confidence", [0.4, 1.0])
def test_a_confidence_outside_its_range_is_refused(confidence):
    with pytest.raises(UsageError) as raised:
        match(prints(one=ONE), prints(x=ONE), confidence=confidence)
    assert raised.value.slug == "confidence-range"
