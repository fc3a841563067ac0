"""How each feed follows from the one before: states, tokens, samples, scripts and made-up numbers; what is refused."""

from pathlib import Path

import numpy as np
import pytest

from engine_scripts import engine_file
from models import parse
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.inputs.feed import Origin
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.steps_report import STEPS

CELL = "g (float[2] x, float[2] h0) => (float[2] hn) { s = Add(x, h0) hn = Tanh(s) }"
DECODER = """
    g (int64[B, S] input_ids, float[B, P, 4] past, int64[B, T] attention_mask) => (
        float[B, S, 5] logits, float[B, T, 4] present) { logits = Other(input_ids) present = Cache(past, input_ids) }"""
"""Only the names, types and shapes of inputs and outputs count."""
GROWING = "g (int64[1, S] input_ids) => (float[1, S, 5] logits) { logits = Other(input_ids) }"
PLAIN = "g (float[2] x) => (float[2] y) { y = Exp(x) }"


def feeds_of(text, *, paths=(), **given):
    """Return the feeds of a model of ONNX text."""
    feeding = given.pop("feeding", FeedRequest(paths=tuple(map(str, paths))))
    return StepFeeds(StepsRequest(model=Path("m.onnx"), target="", feeding=feeding, **given), parse(text))


def saved(folder, **samples):
    """Write one file per sample of all inputs; return their paths."""
    count = len(next(iter(samples.values())))
    paths = [folder / f"{number}.npz" for number in range(count)]
    for number, path in enumerate(paths):
        np.savez(path, **{name: each[number] for name, each in samples.items()})
    return paths


def slug_of(*given, **more):
    """Return the slug with which feeds are refused."""
    with pytest.raises((DataError, UsageError)) as caught:
        feeds_of(*given, **more)
    return caught.value.slug


def test_a_state_begins_as_zeros_and_other_inputs_get_new_numbers_that_stay_the_same():
    feeds, again = feeds_of(CELL), feeds_of(CELL)
    assert (feeds.steps, feeds.origin, feeds.keeps_states, feeds.length(feeds.first)) == (STEPS, Origin.RANDOM, True, 0)
    np.testing.assert_array_equal(feeds.first["h0"], [0, 0])
    outputs = {"hn": np.float32([1, 2])}
    first, second = (feeds.after(step, feeds.first, outputs) for step in (0, 1))
    np.testing.assert_array_equal(first["h0"], [1, 2])
    assert not np.array_equal(first["x"], feeds.first["x"])
    assert not np.array_equal(first["x"], second["x"])
    np.testing.assert_array_equal(again.after(1, again.first, outputs)["x"], second["x"])
    np.testing.assert_array_equal(feeds.after(0, feeds.first, outputs)["x"], first["x"])


def test_an_engine_on_its_own_state_gets_all_else_from_the_reference():
    feeds = feeds_of(CELL)
    right = feeds.after(0, feeds.first, {"hn": np.float32([1, 2])})
    own = feeds.own("the target", 0, feeds.first, {"hn": np.float32([3, 4])}, right)
    np.testing.assert_array_equal(own["h0"], [3, 4])
    np.testing.assert_array_equal(own["x"], right["x"])


def test_samples_are_one_for_each_step_without_the_states(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    feeds = feeds_of(CELL, paths=saved(tmp_path, x=x))
    assert (feeds.steps, feeds.origin) == (3, Origin.REAL)
    np.testing.assert_array_equal(feeds.first["x"], x[0])
    np.testing.assert_array_equal(feeds.first["h0"], [0, 0])
    outputs = {"hn": np.float32([1, 2])}
    np.testing.assert_array_equal(feeds.after(0, feeds.first, outputs)["x"], x[1])
    last = feeds.after(2, {**feeds.first, "x": x[2]}, outputs)
    np.testing.assert_array_equal(last["x"], x[2])  # behind the last sample it stays


def test_states_in_samples_are_those_of_the_first_step_alone(tmp_path):
    paths = saved(tmp_path, x=np.zeros((2, 2), np.float32), h0=np.float32([[7, 7], [8, 8]]))
    feeds = feeds_of(CELL, paths=paths)
    np.testing.assert_array_equal(feeds.first["h0"], [7, 7])
    np.testing.assert_array_equal(feeds.after(0, feeds.first, {"hn": np.float32([1, 2])})["h0"], [1, 2])


def test_as_many_steps_as_asked_for_need_as_many_samples_or_one(tmp_path):
    paths = saved(tmp_path, x=np.zeros((3, 2), np.float32))
    assert feeds_of(CELL, paths=paths, steps=2).steps == 2
    assert feeds_of(CELL, paths=paths[:1]).steps == STEPS
    assert slug_of(CELL, paths=paths, steps=4) == "steps-too-few"


def test_what_does_not_fit_the_model_is_refused(tmp_path):
    assert slug_of(CELL, paths=saved(tmp_path, x=np.zeros((1, 3), np.float32))) == "feed-shape-mismatch"
    assert slug_of(CELL, paths=saved(tmp_path, other=np.zeros((1, 2), np.float32))) == "feed-input-unknown"


def test_a_decoder_gets_the_likeliest_token_its_cache_and_a_longer_mask(tmp_path):
    feeds = feeds_of(DECODER, paths=saved(tmp_path, input_ids=np.array([[[1, 2, 3]]])), carry=("present=past",))
    assert (feeds.first["past"].shape, feeds.length(feeds.first)) == ((1, 0, 4), 3)
    np.testing.assert_array_equal(feeds.first["attention_mask"], [[1, 1, 1]])
    scores = np.zeros((1, 3, 5), np.float32)
    scores[0, -1, 4] = 1
    outputs = {"logits": scores, "present": np.ones((1, 3, 4), np.float32)}
    made = feeds.after(0, feeds.first, outputs)
    np.testing.assert_array_equal(made["input_ids"], [[4]])
    np.testing.assert_array_equal(made["attention_mask"], [[1, 1, 1, 1]])
    assert (made["past"].shape, feeds.length(made)) == ((1, 3, 4), 4)
    np.testing.assert_array_equal(feeds.after(0, feeds.first, outputs, np.array([2]))["input_ids"], [[2]])


def test_tokens_that_are_given_come_before_those_that_follow(tmp_path):
    ids = np.array([[[1]], [[2]]])
    feeds = feeds_of(DECODER, paths=saved(tmp_path, input_ids=ids), carry=("present=past",), steps=3)
    scores = np.zeros((1, 1, 5), np.float32)
    scores[0, 0, 4] = 1
    outputs = {"logits": scores, "present": np.ones((1, 1, 4), np.float32)}
    chosen = [feeds.after(step, feeds.first, outputs)["input_ids"].item() for step in (0, 1)]
    assert chosen == [2, 4]  # the second step has no sample behind it


def test_a_model_of_the_whole_sequence_takes_one_more_token_each_time(tmp_path):
    feeds = feeds_of(GROWING, paths=saved(tmp_path, input_ids=np.array([[[1, 2]]])))
    assert not feeds.keeps_states
    made = feeds.after(0, feeds.first, {"logits": np.float32([[[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]])})
    np.testing.assert_array_equal(made["input_ids"], [[1, 2, 3]])


def test_what_leads_nowhere_or_may_be_a_state_is_refused():
    assert slug_of(PLAIN) == "steps-nothing-carried"
    left = GROWING.replace("(int64[1, S] input_ids)", "(int64[1, S] input_ids, float[1, 4] memory)")
    left = left.replace("logits)", "logits, float[1, 4] memo)").replace(
        "Other(input_ids)", "Other(input_ids) memo = A(memory)"
    )
    assert slug_of(left) == "steps-nothing-carried"
    assert feeds_of(left, carry=("none",)).left == ()
    assert [pair.input for pair in feeds_of(left, carry=("memo=memory",)).roles.carry] == ["memory"]


BETWEEN = """
calls = 0

def next_feed(outputs, feed, step):
    global calls
    calls += 1
    return {"x" if step < 9 else "z": outputs["y"] + calls}
"""


def test_a_script_makes_the_next_feed_in_a_process_for_each_engine(tmp_path):
    file = engine_file(BETWEEN)
    feeds = feeds_of(PLAIN, between=str(file))
    outputs = {"y": np.float32([1, 2])}
    try:
        assert feeds.keeps_states
        right = [feeds.after(step, feeds.first, outputs)["x"].tolist() for step in (0, 1)]
        assert right == [[2, 3], [3, 4]]  # it remembers its first call
        own = feeds.own("the target", 0, feeds.first, {"y": np.float32([5, 5])}, {"x": np.float32([0, 0])})
        assert own["x"].tolist() == [6, 6]
        with pytest.raises(UsageError) as caught:
            feeds.after(9, feeds.first, outputs)
        assert caught.value.slug == "between-unknown-input"
    finally:
        feeds.close()


def test_masks_are_read_otherwise_where_an_engine_refuses_what_their_names_say():
    text = """
        g (int64[1, S] input_ids, int64[1, M] mask, float[1, P, 4] past) => (
            float[1, S, 5] logits, float[1, T, 4] present) { logits = Other(input_ids) present = Cache(past) }"""
    feeds = feeds_of(text)
    asked = []

    def run(feed):
        asked.append(feed["mask"].shape[-1])
        if feed["mask"].shape[-1] != 8:
            raise EngineError("8 by 9", slug="run-failed", cure="")
        return {"logits": np.float32([[[0, 0, 0, 1, 0]]]), "present": np.ones((1, 9, 4), np.float32)}

    feed, outputs = feeds.taken(0, None, feeds.first, run)
    assert feed is feeds.first
    following = feeds.after(0, feed, outputs)
    later, _ = feeds.taken(1, (feed, outputs), following, run)
    assert (asked, feeds.roles.seen) == ([8, 9, 8], ("mask",))
    assert later["mask"].shape == (1, 8)
    assert feeds.notes == ["the reference runs no other reading: 'mask' stays what it is"]
    feeds.taken(2, (later, outputs), feeds.after(1, later, outputs), run)
    assert len(feeds.notes) == 1


def test_what_an_engine_refuses_in_every_reading_is_its_refusal():
    feeds = feeds_of(DECODER)
    named = feeds.roles

    def run(feed):
        raise EngineError(f"not {feed['attention_mask'].shape}", slug="run-failed", cure="")

    with pytest.raises(EngineError, match=r"not \(1, 8\)"):
        feeds.taken(0, None, feeds.first, run)
    assert feeds.roles == named
    assert feeds.notes == []


def test_a_prompt_that_was_made_up_is_one_token_where_no_other_runs(tmp_path):
    """As of models that torch exported with one example token: it fixed the length inside and left it open outside."""

    def run(feed):
        if feed["input_ids"].shape[-1] != 1:
            raise EngineError("{1} != {8}", slug="run-failed", cure="")
        return {}

    feeds = feeds_of(DECODER)
    feed, _ = feeds.taken(0, None, feeds.first, run)
    assert feed is feeds.first
    assert {name: feed[name].shape[-1] for name in ("input_ids", "attention_mask")} == {
        "input_ids": 1, "attention_mask": 1,
    }  # fmt: skip
    assert [note.partition(",")[0] for note in feeds.notes] == ["the reference takes one token at a time"]
    given = feeds_of(DECODER, paths=saved(tmp_path, input_ids=np.array([[[1, 2]]])))
    with pytest.raises(EngineError, match=r"!= .8"):
        given.taken(0, None, given.first, run)


def test_a_mask_that_is_given_counts_where_positions_are_not(tmp_path):
    """A batch that is padded on the left."""
    text = """
        g (int64[B, S] input_ids, int64[B, T] attention_mask, int64[B, S] position_ids, float[B, P, 4] past) => (
            float[B, S, 5] logits, float[B, T, 4] present) { logits = Other(input_ids) present = Cache(past) }"""
    ids, mask = np.array([[0, 0, 3], [1, 2, 3]]), np.array([[0, 0, 1], [1, 1, 1]])
    feeds = feeds_of(text, paths=saved(tmp_path, input_ids=[ids], attention_mask=[mask]))
    np.testing.assert_array_equal(feeds.first["attention_mask"], mask)
    np.testing.assert_array_equal(feeds.first["position_ids"], [[0, 0, 0], [0, 1, 2]])
