"""The feeds of steps, against what a decoder's author would write by hand."""

import numpy as np
import pytest

from tensortriage.errors import DataError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_steps.feeds.carried import Carry
from tensortriage_steps.feeds.next_feed import beginning, following, last_scores, next_tokens, step_roles
from tensortriage_steps.feeds.state_parts import WHOLE

INPUTS = [
    ValueSpec("input_ids", DType.INT64, ("batch", "sequence")),
    ValueSpec("attention_mask", DType.INT64, ("batch", "past + sequence")),
    ValueSpec("position_ids", DType.INT64, ("batch", "sequence")),
    ValueSpec("past_key_0", DType.FLOAT, ("batch", 2, "past", 4)),
]
OUTPUTS = [
    ValueSpec("logits", DType.FLOAT, ("batch", "sequence", 9)),
    ValueSpec("present_key_0", DType.FLOAT, ("batch", 2, "past + sequence", 4)),
]
ROLES = step_roles(INPUTS, OUTPUTS, [Carry("present_key_0", "past_key_0")])
FIRST = {
    "input_ids": np.array([[5, 6, 7]]),
    "attention_mask": np.array([[0, 1, 1]]),
    "position_ids": np.array([[0, 0, 1]]),
    "past_key_0": np.zeros((1, 2, 0, 4), np.float32),
}


def test_inputs_are_known_by_name_and_type():
    assert (ROLES.tokens, ROLES.masks, ROLES.positions) == ("input_ids", ("attention_mask",), ("position_ids",))
    assert ROLES.logits == "logits"
    assert ROLES.generates
    assert ROLES.grown == {"past_key_0": (2,)}


def test_the_next_step_gets_a_token_a_longer_mask_and_the_next_position():
    state = {"past_key_0": np.ones((1, 2, 3, 4), np.float32)}
    made = following(ROLES, FIRST, state, np.array([8]))
    np.testing.assert_array_equal(made["input_ids"], [[8]])
    np.testing.assert_array_equal(made["attention_mask"], [[0, 1, 1, 1]])
    np.testing.assert_array_equal(made["position_ids"], [[2]])
    assert made["past_key_0"] is state["past_key_0"]


def test_without_states_the_sequence_grows():
    roles = step_roles(INPUTS[:3], OUTPUTS[:1], [])
    made = following(roles, {name: FIRST[name] for name in list(FIRST)[:3]}, {}, np.array([8]))
    np.testing.assert_array_equal(made["input_ids"], [[5, 6, 7, 8]])
    np.testing.assert_array_equal(made["position_ids"], [[0, 0, 1, 2]])
    assert roles.regrows


def test_a_mask_over_queries_and_keys_keeps_the_last_query():
    inputs = [ValueSpec("attention_mask", DType.FLOAT, ("batch", 1, "sequence", "total")), *INPUTS[:1], INPUTS[3]]
    roles = step_roles(inputs, OUTPUTS, [Carry("present_key_0", "past_key_0")])
    causal = np.where(np.tri(3), 0.0, -1e9).astype(np.float32)[None, None]
    made = following(roles, {**FIRST, "attention_mask": causal}, {}, np.array([8]))
    np.testing.assert_array_equal(made["attention_mask"], np.zeros((1, 1, 1, 4)))


def test_what_is_not_given_begins_empty_shown_and_from_0():
    made_up = {**FIRST, "attention_mask": np.zeros((1, 8), int), "position_ids": np.full((1, 8), 3)}
    first = beginning(ROLES, {"input_ids": np.array([[1, 2]])}, made_up)
    np.testing.assert_array_equal(first["attention_mask"], [[1, 1]])
    np.testing.assert_array_equal(first["position_ids"], [[0, 1]])
    assert first["past_key_0"].shape == (1, 2, 0, 4)


def test_a_cache_has_new_rows_and_old_ones():
    feed = {"past_key_0": np.zeros((1, 2, 3, 4)), "input_ids": np.array([[1, 2]])}
    made = np.ones((1, 2, 5, 4))  # a reference that rounds what it holds: nothing is told by bits
    parts = ROLES.parts("present_key_0", feed, made)
    assert [(part.word, made[part.place].shape, part.source) for part in parts] == [
        ("new rows", (1, 2, 2, 4), None),
        ("old rows", (1, 2, 3, 4), None),
    ]
    assert ROLES.parts("logits", feed, np.zeros((1, 1, 9))) == WHOLE


def test_the_largest_score_of_the_last_position_is_next():
    logits = np.array([[[9, 0, 0], [0, 1, 2]]], np.float32)
    assert next_tokens(logits).tolist() == [2]
    assert next_tokens(logits[:, 0]).tolist() == [0]
    with pytest.raises(DataError) as caught:
        last_scores(np.zeros(3))
    assert caught.value.slug == "logits-shape"


def with_cache_of(size, mask_shape=("batch", None)):
    """Roles and first feed of a decoder whose cache has a fixed size."""
    shape = (*mask_shape[:-1], size)
    inputs = [INPUTS[0], ValueSpec("attention_mask", DType.INT64, shape), *(v for v in CACHE)]
    roles = step_roles(inputs, OUTPUTS[:1] + CACHE_OUT, [Carry("present_key_0", "past_key_0")])
    made_up = {
        "input_ids": np.array([[5, 6, 7]]),
        "attention_mask": np.ones([1 if not isinstance(axis, int) else axis for axis in shape], np.int64),
        "past_key_0": np.ones((1, 2, size, 4), np.float32),
    }
    return roles, made_up


CACHE = [ValueSpec("past_key_0", DType.FLOAT, (1, 2, 5, 4))]
CACHE_OUT = [ValueSpec("present_key_0", DType.FLOAT, (1, 2, 5, 4))]


def test_the_mask_of_a_cache_of_a_fixed_size_is_filled():
    roles, made_up = with_cache_of(5)
    first = beginning(roles, {}, made_up)
    np.testing.assert_array_equal(first["attention_mask"], [[1, 1, 1, 0, 0]])
    second = following(roles, first, {}, np.array([8]))
    np.testing.assert_array_equal(second["attention_mask"], [[1, 1, 1, 1, 0]])
    third = following(roles, second, {}, np.array([8]))
    np.testing.assert_array_equal(third["attention_mask"], [[1, 1, 1, 1, 1]])
    with pytest.raises(DataError) as caught:
        following(roles, third, {}, np.array([8]))
    assert caught.value.slug == "steps-cache-full"


def test_a_mask_of_a_fixed_size_that_is_added_is_filled_behind_what_is_shown():
    roles, first = with_cache_of(5, ("batch", 1, "queries", None))
    first["attention_mask"] = np.where(np.tri(3, 5), 0.0, -1e9).astype(np.float32)[None, None]
    second = following(roles, first, {}, np.array([8]))
    np.testing.assert_array_equal(second["attention_mask"], np.float32([[[[0, 0, 0, 0, -1e9]]]]))


def seq2seq(*more, mask="encoder_attention_mask", read=("batch", "read")):
    """Roles of an encoder-decoder's decoder, as Optimum writes it."""
    cross = [ValueSpec(f"past_key_values.0.encoder.{part}", DType.FLOAT, ("batch", 2, "read", 4)) for part in ("key",)]
    own = ValueSpec("past_key_values.0.decoder.key", DType.FLOAT, ("batch", 2, "past", 4))
    inputs = [INPUTS[0], ValueSpec(mask, DType.INT64, read), own, *cross, *more]
    outputs = [OUTPUTS[0], ValueSpec("present.0.decoder.key", DType.FLOAT, ("batch", 2, "past + sequence", 4))]
    return step_roles(inputs, outputs, [Carry("present.0.decoder.key", own.name)])


@pytest.mark.parametrize(
    ("mask", "read"), [("encoder_attention_mask", ("batch", None)), ("padding_mask", ("batch", "read"))]
)
def test_the_mask_of_what_an_encoder_read_stays(mask, read):
    roles = seq2seq(mask=mask, read=read)
    assert (roles.masks, roles.seen) == ((), (mask,))
    made_up = {
        "input_ids": np.array([[5, 6, 7]] * 2),
        mask: np.zeros((1, 6), np.int64),
        "past_key_values.0.decoder.key": np.zeros((2, 2, 0, 4), np.float32),
        "past_key_values.0.encoder.key": np.ones((2, 2, 6, 4), np.float32),
    }
    first = beginning(roles, {}, made_up)
    np.testing.assert_array_equal(first[mask], np.ones((2, 6)))
    second = following(roles, first, {}, np.array([8, 9]))
    assert second[mask] is first[mask]


def test_a_merged_decoder_takes_its_caches_from_the_second_step_on():
    flag, beams = ValueSpec("use_cache_branch", DType.BOOL, (1,)), ValueSpec("beam_idx", DType.INT32, ("batch",))
    roles = seq2seq(flag, beams)
    made_up = {
        "input_ids": np.array([[5], [6]]),
        "encoder_attention_mask": np.zeros((2, 6), np.int64),
        "past_key_values.0.decoder.key": np.zeros((2, 2, 0, 4), np.float32),
        "past_key_values.0.encoder.key": np.ones((2, 2, 6, 4), np.float32),
        "use_cache_branch": np.array([True]),
        "beam_idx": np.int32([7, 7]),
    }
    first = beginning(roles, {}, made_up)
    assert first["use_cache_branch"].tolist() == [False]
    assert first["beam_idx"].tolist() == [0, 1]
    assert following(roles, first, {}, np.array([8, 9]))["use_cache_branch"].tolist() == [True]


def test_an_output_that_is_empty_leaves_the_state_as_it_is():
    roles = step_roles(INPUTS, OUTPUTS, [Carry("present_key_0", "past_key_0")])
    feed = {"past_key_0": np.ones((1, 2, 3, 4), np.float32)}
    assert roles.state({"present_key_0": np.zeros((0, 2, 1, 4), np.float32)}, feed)["past_key_0"] is feed["past_key_0"]


def test_of_encoder_and_decoder_in_one_the_decoder_gets_the_token():
    inputs = [
        ValueSpec("input_ids", DType.INT64, ("batch", "read")),
        ValueSpec("attention_mask", DType.INT64, ("batch", "read")),
        ValueSpec("decoder_input_ids", DType.INT64, ("batch", "sequence")),
    ]
    roles = step_roles(inputs, OUTPUTS[:1], [])
    assert (roles.tokens, roles.masks, roles.seen) == ("decoder_input_ids", (), ("attention_mask",))


def test_positions_count_what_the_given_mask_shows():
    """As transformers counts them for batches that are padded on the left."""
    made_up = {**FIRST, "position_ids": np.full((1, 8), 3)}
    given = {"input_ids": np.array([[0, 0, 5], [6, 7, 8]]), "attention_mask": np.array([[0, 0, 1], [1, 1, 1]])}
    first = beginning(ROLES, given, {**made_up, "past_key_0": np.zeros((2, 2, 0, 4), np.float32)})
    np.testing.assert_array_equal(first["position_ids"], [[0, 0, 0], [0, 1, 2]])
    second = following(ROLES, first, {}, np.array([8, 9]))
    np.testing.assert_array_equal(second["position_ids"], [[1], [3]])
    np.testing.assert_array_equal(second["attention_mask"], [[0, 0, 1, 1], [1, 1, 1, 1]])


def test_the_mask_of_a_window_is_as_long_as_what_it_holds():
    state = {"past_key_0": np.ones((1, 2, 2, 4), np.float32)}  # a row is gone
    (windowed,) = (each for each in ROLES.readings() if each.windowed)
    made = following(windowed, FIRST, state, np.array([8]))
    np.testing.assert_array_equal(made["attention_mask"], [[1, 1, 1]])


def test_other_readings_of_masks_begin_with_those_that_change_least():
    roles = seq2seq(ValueSpec("attention_mask", DType.INT64, ("batch", "past + sequence")))
    first, *others = [(each.masks, each.windowed, each.seen) for each in roles.readings()]
    assert first == (("attention_mask", "encoder_attention_mask"), (), ())
    assert len(others) == 7
    assert (("attention_mask",), ("attention_mask",), ("encoder_attention_mask",)) in others


def test_an_axis_that_the_batch_names_does_not_grow():
    """An exporter gave every axis of the output a name of its own."""
    outputs = [OUTPUTS[0], ValueSpec("present_key_0", DType.FLOAT, ("any_0", "any_1", "any_2", "any_3"))]
    assert step_roles(INPUTS, outputs, [Carry("present_key_0", "past_key_0")]).grown == {"past_key_0": (2,)}


def test_tokens_without_an_axis_of_the_sequence_are_one_a_step():
    inputs = [ValueSpec("input_ids", DType.INT64, ("batch",)), INPUTS[1], INPUTS[3]]
    roles = step_roles(inputs, OUTPUTS, [Carry("present_key_0", "past_key_0")])
    feed = {"input_ids": np.array([3, 4]), "attention_mask": np.ones((2, 4), int), "past_key_0": np.ones((2, 2, 3, 4))}
    made = following(roles, feed, {}, np.array([5, 6]))
    assert made["input_ids"].tolist() == [5, 6]
    assert made["attention_mask"].shape == (2, 5)
