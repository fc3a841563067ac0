"""Feeds that are ours to choose are those on which the model runs and says something; what is chosen is told."""

import logging

import numpy as np
import onnx
import onnx.parser
import pytest

from tensortriage.errors import DataError
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.feeds.trial import feeds_that_run, made_up_sizes, say_nothing

PADDED = """g (float[1, n] x) => (float[1, m] y) <int64[4] pads = {0, 0, 0, 32}> {
    y = Pad <mode: string = "reflect"> (x, pads)
}"""


@pytest.fixture
def saved(tmp_path):
    def save(text):
        onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]>\n{text}'), tmp_path / "m.onnx")
        return Model.load(tmp_path / "m.onnx")

    return save


def test_a_size_that_runs_is_taken_and_given_back_as_an_option_that_is_taken(saved, caplog):
    model = saved(PADDED)
    with caplog.at_level(logging.WARNING):
        (feed,) = feeds_that_run(FeedRequest(), model)
    size = feed.tensors["x"].shape[1]
    assert size > 32
    option, shape = caplog.messages[-1].split()[-2:]
    assert (option, shape) == ("--input-shapes", f"x:[1,{size}]")
    caplog.clear()
    (again,) = feeds_that_run(FeedRequest(paths=(shape,)), model)
    assert again.tensors["x"].shape == (1, size)
    assert not caplog.messages  # it runs at once


def test_data_that_are_not_ours_to_choose_stay(saved, tmp_path):
    np.savez(tmp_path / "short.npz", x=np.ones((1, 8), np.float32))
    (feed,) = feeds_that_run(FeedRequest(paths=(str(tmp_path / "short.npz"),)), saved(PADDED))
    assert feed.tensors["x"].shape == (1, 8)
    (feed,) = feeds_that_run(FeedRequest(seed=1), saved(PADDED))
    assert feed.tensors["x"].shape == (1, 1)  # Polygraphy's


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PADDED.replace("32", "99999"), "exceeds maximum allowed"),
        ("g (float[1, 8] x) => (float[1, 8] y) { a = Sub(x, x) b = Div(a, a) y = Add(b, x) }", "NaN"),
    ],
)
def test_what_cannot_be_found_is_a_question(saved, text, why):
    with pytest.raises(DataError, match=why) as caught:
        feeds_that_run(FeedRequest(), saved(text))
    assert (caught.value.slug, caught.value.exit_code) == ("made-up-data-fail", 2)
    assert "x [1, " in caught.value.message
    assert "--input" in caught.value.cure
    if why == "NaN":
        assert feeds_that_run(FeedRequest(), saved(text), nan_will_do=True)[0].name == "random[0]"


def test_a_length_is_that_of_the_whole(saved):
    text = """g (float[b, t, 6] feats, int64[b] feats_len) => (float[b, t, 6] y, int64[b] n) {
        y = Neg(feats) n = Identity(feats_len)
    }"""
    (feed,) = feeds_that_run(FeedRequest(), saved(text))
    assert feed.tensors["feats_len"].tolist() == [feed.tensors["feats"].shape[1]]


def test_numbers_on_both_sides_of_a_comparison_are_tried(saved):
    text = """g (float[1, 8] x, int64 rate) => (float[1, 8] y) <int64 lim = {32000}> {
        c = Less(rate, lim) f = Cast<to = 1>(c) y = Mul(x, f)
    }"""
    (feed,) = feeds_that_run(FeedRequest(), saved(text))
    assert feed.tensors["rate"] < 32000


def test_outputs_that_are_no_evidence():
    some = np.float32([1, 2])
    assert not say_nothing({"y": some})
    assert not say_nothing({"y": some, "constant": np.float32([1, 1])})
    assert say_nothing({"y": np.float32([1, 1])})
    assert say_nothing({"y": some, "z": np.float32([1, np.nan])})
    assert say_nothing({"y": np.float32([np.inf, -np.inf])})


@pytest.mark.parametrize(
    ("inputs", "given", "told"),
    [
        ("float[1, length] x", {}, "on sizes that were made up: x [1, 8] (give yours: --input-shapes x:[1,8])"),
        ("float[1, length] x", {"x": (1, 20)}, ""),
        ("float[batch, 3] x", {}, ""),
        ("float[2, 3] x", {}, ""),
    ],
    ids=["open", "given", "batch", "fixed"],
)
def test_sizes_of_ours_that_may_decide_are_told_with_how_to_give_others(saved, inputs, given, told):
    model = saved(f"g ({inputs}) => (float y) {{ y = ReduceSum<keepdims=0>(x) }}")
    (feed,) = feeds_that_run(FeedRequest(shapes=given), model)
    assert made_up_sizes(model, feed, given) == told
