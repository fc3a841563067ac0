import numpy as np
import pytest

from tensortriage.compare.alignment.align import align, paired_by_value
from tensortriage.errors import DataError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def spec(name, shape=(2,), dtype=DType.FLOAT):
    return ValueSpec(name, dtype, shape)


def test_only_exact_names_match():
    alignment = align([spec("conv1"), spec("logits"), spec("x")], [spec("Logits"), spec("conv10"), spec("x")])
    assert alignment.pairs == ("x",)
    assert alignment.only_reference == ("conv1", "logits")
    assert alignment.only_target == ("Logits", "conv10")


def test_pairs_keep_the_order_of_the_reference():
    assert align([spec("b"), spec("a")], [spec("a"), spec("b")]).pairs == ("b", "a")


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        (spec("x", (2, 3)), spec("x", (3, 2)), "shapes differ"),
        (spec("x", (2,)), spec("x", (2, 1)), "shapes differ"),
        (spec("x", dtype=DType.STRING), spec("x"), "strings"),
    ],
)
def test_what_cannot_be_compared_says_why(ours, theirs, reason):
    alignment = align([ours, spec("y")], [theirs, spec("y")])
    assert alignment.pairs == ("y",)
    assert reason in alignment.incompatible[0].reason
    assert [item.name for item in alignment.incompatible] == ["x"]


@pytest.mark.parametrize("theirs", [spec("x", None), spec("x", ("n",)), spec("x", (None,)), spec("x", dtype=None)])
def test_what_is_unknown_fits_anything(theirs):
    assert align([spec("x")], [theirs]).pairs == ("x",)


def test_other_number_types_can_be_compared():
    assert align([spec("x")], [spec("x", dtype=DType.BFLOAT16)]).pairs == ("x",)


@pytest.mark.parametrize("target", [[], [spec("y")]])
def test_nothing_in_common_is_an_error(target):
    with pytest.raises(DataError, match="'x'") as caught:
        align([spec("x")], target)
    assert caught.value.slug == "nothing-in-common"


def test_names_that_are_missing_are_found_by_value_and_only_when_sure():
    rng = np.random.default_rng(1)
    one, two = (rng.standard_normal((8, 16)).astype(np.float32) for _ in range(2))
    reference = {"one": one, "two": two}
    rounded = {name: array.astype(np.float16).astype(np.float32) for name, array in reference.items()}
    assert paired_by_value(reference, {"x": rounded["two"], "y": rounded["one"]}) == {"x": "two", "y": "one"}
    assert paired_by_value(reference, {"one": one, "y": rounded["two"]}) == {"y": "two"}
    assert paired_by_value(reference, {"one": one, "two": two, "y": two}) == {}  # nothing is missing
    for other in (two * 2, two.T.copy(), two.reshape(16, 8), rng.standard_normal((8, 16)).astype(np.float32)):
        assert paired_by_value(reference, {"one": one, "y": other}) == {}
    assert paired_by_value({"one": one, "two": one.copy()}, {"x": one, "y": one}) == {}  # which is which is open
