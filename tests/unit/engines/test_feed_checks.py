import ml_dtypes
import numpy as np
import pytest

from tensortriage.engines.feed_checks import (
    MAX_REASON,
    build_failed,
    checked_feed,
    one_line,
    run_failed,
)
from tensortriage.errors import DataError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_worker.onnxruntime.values import reason

X = ValueSpec("x", DType.FLOAT, ("n", 3))


def test_arrays_that_fit_are_passed_on_without_a_copy():
    x = np.zeros((2, 3), np.float32)
    assert checked_feed({"x": x}, [X])["x"] is x


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 6), np.float32)[:, ::2],
        np.zeros((3, 2), np.float32).T,
        np.zeros((2, 3), np.dtype(np.float32).newbyteorder()),
    ],
)
def test_arrays_become_contiguous_and_native(array):
    ready = checked_feed({"x": array}, [X])["x"]
    assert ready.flags.c_contiguous
    assert ready.dtype == np.float32
    assert ready.dtype.isnative


def test_scalars_keep_their_rank():
    spec = ValueSpec("s", DType.INT64, ())
    assert checked_feed({"s": np.array(3)}, [spec])["s"].shape == ()


def test_unknown_dtype_and_rank_accept_anything():
    spec = ValueSpec("x", None, None)
    assert checked_feed({"x": np.zeros((1, 2), np.int8)}, [spec])["x"].dtype == np.int8


@pytest.mark.parametrize(
    ("feed", "complaint"),
    [
        ({}, "the feed lacks 'x'"),
        ({"y": np.zeros((2, 3), np.float32)}, "the feed lacks 'x' and has 'y', which is no input"),
        ({"x": np.zeros((2, 3), np.float64)}, "input 'x' expects float32, the feed has float64"),
        ({"x": np.zeros((2, 3), ml_dtypes.bfloat16)}, "expects float32, the feed has bfloat16"),
        ({"x": np.zeros((2, 4), np.float32)}, "input 'x' expects shape (n, 3), the feed has (2, 4)"),
        ({"x": np.zeros(3, np.float32)}, "input 'x' expects shape (n, 3), the feed has (3,)"),
        ({"x": np.array(["a"] * 3).reshape(1, 3)}, "the feed has string"),
    ],
)
def test_feeds_that_do_not_fit(feed, complaint):
    with pytest.raises(DataError) as caught:
        checked_feed(feed, [X])
    assert caught.value.slug == "feed-mismatch"
    assert complaint in caught.value.message


def test_many_names_are_cut_short():
    with pytest.raises(DataError) as caught:
        checked_feed({}, [ValueSpec(f"i{k}", DType.FLOAT, ()) for k in range(12)])
    assert "'i9' and 2 more" in caught.value.message


def test_reasons_are_one_line_and_bounded():
    assert one_line("a\n  b\tc ") == "a b c"
    assert len(one_line("x" * 9999)) == MAX_REASON
    assert build_failed("E", "").message == "E refused the model: no reason given"
    assert run_failed("E", "a\nb").message == "E failed to run: a b"


def test_source_places_are_removed():
    text = (
        "While running Reshape. /onnxruntime_src/onnxruntime/core/reshape_helper.h:91 onnxruntime::ReshapeHelper::"
        "ReshapeHelper(const onnxruntime::TensorShape&, bool) size was false. Input shape:{4}"
    )
    assert reason(RuntimeError(text)) == "While running Reshape. size was false. Input shape:{4}"
    assert reason(RuntimeError("no place (here) at all")) == "no place (here) at all"
