import ml_dtypes
import numpy as np
import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def check(array, dtype, shape=None, casting=Casting.EXACT):
    spec = ValueSpec("x", DType.parse(dtype) if dtype else None, shape)
    return check_feed(Feed("f[0]", {"x": array}, Origin.REAL), [spec], casting=casting).tensors["x"]


def refused(array, dtype, shape=None, casting=Casting.EXACT, *, slug="feed-dtype-mismatch"):
    with pytest.raises(DataError) as caught:
        check(array, dtype, shape, casting)
    assert caught.value.slug == slug
    assert caught.value.message.startswith("f[0]: input 'x'")
    return caught.value


def test_what_fits_is_not_copied():
    array = np.ones((2, 3), np.float32)
    assert check(array, "float32", ("n", 3)) is array
    assert check(array, None, None) is array


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([1, -(2**31)], np.int32), "int64"),
        (np.array([5, 2**31 - 1], np.int64), "int32"),
        (np.array([0.5, np.nan, np.inf, -0.0]), "float32"),
        (np.array([0.5, -65504.0]), "float16"),
        (np.array([0.5, np.nan, 3e38], np.float32).astype(ml_dtypes.bfloat16), "float32"),
        (np.array([1.0, 0.0]), "bool"),
        (np.array([True, False]), "int64"),
        (np.array([3.0, -7.0]), "int8"),
        (np.array([3, -7]), "int4"),
        (np.array([0, 255], np.uint8), "float32"),
        (np.array([2**53, 2**60]), "float64"),
        (np.array([2.0**63]), "uint64"),
        (np.array([1.5, -2]), "complex64"),
    ],
)
def test_casts_that_lose_nothing_are_made(array, wanted):
    cast = check(array, wanted)
    assert cast.dtype == DType.parse(wanted).numpy
    np.testing.assert_array_equal(cast.astype(complex), array.astype(complex))


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([0.1]), "float32"),
        (np.array([1e-60]), "float32"),
        (np.array([2**31]), "int32"),
        (np.array([-1]), "uint64"),
        (np.array([2**63], np.uint64), "int64"),
        (np.array([2**53 + 1]), "float64"),
        (np.array([2**63 - 1]), "float64"),
        (np.array([2**24 + 1]), "float32"),
        (np.array([0.5]), "int32"),
        (np.array([np.nan]), "int32"),
        (np.array([np.nan]), "bool"),
        (np.array([2]), "bool"),
        (np.array([8]), "int4"),
        (np.array([1e9]), "int8"),
        (np.array([257.0], np.float32), "bfloat16"),
        (np.array([449.0]), "float8_e4m3fn"),
        (np.array([1j]), "float32"),
        (np.array(["1"]), "float32"),
        (np.array([1]), "string"),
        (np.array([np.datetime64("2020-01-01")]), "int64"),
    ],
)
def test_casts_that_lose_something_are_refused(array, wanted):
    assert "x" in refused(array, wanted).message


def test_the_cure_is_the_exact_conversion():
    error = refused(np.array([0.5, 0.1]), "float32")
    assert "1 of 2 values would change, e.g. 0.1 at [1]" in error.message
    assert error.cure.startswith("save array.astype(numpy.float32), or: triage data convert")
    assert "ml_dtypes.bfloat16" in refused(np.array([0.1]), "bfloat16").cure


def test_rounding_has_to_be_asked_for_and_stays_in_range():
    given = np.array([0.1, np.nan, -np.inf, 70000])
    np.testing.assert_array_equal(check(given, "float32", casting=Casting.ROUND), given.astype(np.float32))
    refused(given, "float16", casting=Casting.ROUND)
    refused(np.array([np.inf]), "float8_e4m3fn", casting=Casting.ROUND)
    refused(np.array([1e5]), "float4_e2m1fn", casting=Casting.ROUND)
    assert check(np.array([2.7, -2.7]), "int8", casting=Casting.ROUND).tolist() == [2, -2]
    refused(np.array([300.5]), "int8", casting=Casting.ROUND)
    refused(np.array([np.nan]), "int8", casting=Casting.ROUND)
    refused(np.array([2]), "bool", casting=Casting.ROUND)


def test_raw_items_get_back_the_type_that_npy_files_lose():
    bits = np.array([1.5, -2], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(check(bits.view("V2"), "bfloat16"), bits, strict=True)
    refused(bits.view("V2"), "float16")
    refused(bits.view("V2"), "float8_e5m2")


def test_strings_become_objects_of_str():
    for array in (np.array(["a", "é"]), np.array([b"a", "é".encode()]), np.array(["a", "é"], dtype=object)):
        cast = check(array, "string")
        assert cast.dtype == object
        assert cast.tolist() == ["a", "é"]
    refused(np.array(["a", 3], dtype=object), "string")


def test_byte_order_does_not_matter():
    assert check(np.array([1, 2], ">i4"), "int32").dtype.isnative


@pytest.mark.parametrize(
    ("given", "wanted", "cure"),
    [
        ((2, 4), ("n", 3), "nothing is transposed"),
        ((3,), (1, 3), "array[None]"),
        ((5, 3), (1, 3), "array[:, None]"),
        ((7, 2, 3), (2, 3), "extra leading axis"),
        ((), (1,), "array[None]"),
    ],
)
def test_shapes_must_fit(given, wanted, cure):
    error = refused(np.zeros(given, np.float32), "float32", wanted, slug="feed-shape-mismatch")
    assert cure in error.cure


SPECS = [ValueSpec("ids", DType.INT64, (None,)), ValueSpec("mask", DType.INT64, (None,))]


def test_inputs_come_in_the_models_order():
    feed = Feed("f", {"mask": np.array([1]), "ids": np.array([2])}, Origin.RANDOM)
    checked = check_feed(feed, SPECS)
    assert list(checked.tensors) == ["ids", "mask"]
    assert (checked.name, checked.origin) == ("f", Origin.RANDOM)


@pytest.mark.parametrize(
    ("names", "slug", "words"),
    [
        (["ids"], "feed-input-missing", "'mask' is missing"),
        (["ids", "arr_0"], "feed-input-unknown", "'arr_0'"),
        (["ids", "masks"], "feed-input-unknown", "did you mean 'mask'?"),
    ],
)
def test_names_must_fit(names, slug, words):
    with pytest.raises(DataError) as caught:
        check_feed(Feed("f", {name: np.array([1]) for name in names}, Origin.REAL), SPECS)
    assert caught.value.slug == slug
    assert words in caught.value.message
    assert "'ids', 'mask'" in caught.value.cure


def test_what_is_no_input_is_left_out_and_told(caplog):
    feed = Feed("all.json[0]", {name: np.array([1]) for name in ("layer", "mask", "ids")}, Origin.REAL)
    assert list(check_feed(feed, SPECS).tensors) == ["ids", "mask"]
    assert "all.json[0]: left out, not inputs of the model: 'layer'" in caplog.text
