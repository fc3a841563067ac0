"""What is carried is told by names that exporters write, and by nothing else."""

import pytest

from tensortriage.errors import UsageError
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_steps.feeds.carried import carried, grown_axes, unpaired


def specs(*names, shape=("batch", 2, "past", 8), dtype=DType.FLOAT):
    return [ValueSpec(name, dtype, shape) for name in names]


def pairs(found):
    return [(pair.output, pair.input) for pair in found]


@pytest.mark.parametrize(
    ("output", "given"),
    [
        ("present.0.key", "past_key_values.0.key"),
        ("present_key_0", "past_key_0"),
        ("present_key_values.1.value", "past_key_values.1.value"),
        ("hn", "h0"),
        ("c_n", "c_0"),
        ("new_state", "state"),
        ("state_out", "state_in"),
        ("updated_cache_3", "cache_3"),
        ("stateN", "state"),
        ("kcache_next.0", "kcache.0"),
        ("r_att_cache", "att_cache"),
        ("ssm_state_out_1", "ssm_state_1"),
        ("layers.2.cache_out.k", "layers.2.cache_in.k"),
    ],
)
def test_pairs_are_found_by_name(output, given):
    assert pairs(carried(specs(output), specs(given))) == [(output, given)]


@pytest.mark.parametrize(
    ("output", "given"), [("logits", "input_ids"), ("present.0.key", "past_key_values.1.key"), ("y", "x"), ("x", "x")]
)
def test_names_that_say_nothing_are_no_pair(output, given):
    assert carried(specs(output), specs(given)) == ()


def test_another_type_or_shape_is_no_pair():
    assert carried(specs("hn", dtype=DType.FLOAT16), specs("h0")) == ()
    assert carried(specs("hn", shape=(1, 4)), specs("h0", shape=(1, 5))) == ()


def test_lists_of_states_are_paired_by_number():
    outputs = specs("logits", "k_out_1", "v_out_1", "k_out_0", "v_out_0")
    found = carried(outputs, specs("k_in_0", "v_in_0", "k_in_1", "v_in_1"))
    assert pairs(found) == [(f"{part}_out_{layer}", f"{part}_in_{layer}") for layer in (0, 1) for part in ("k", "v")]


def test_what_may_be_a_state_by_type_and_shape_is_told():
    outputs = specs("logits", "memo_1", "memo_2")
    assert pairs(unpaired(outputs, specs("scratch_1", "scratch_2"), ["logits"])) == [
        ("memo_1", "scratch_1"),
        ("memo_2", "scratch_2"),
    ]
    assert unpaired(outputs, specs("ids", dtype=DType.INT64), ["logits"]) == ()
    assert unpaired(specs("prob", shape=(1, "t", 1)), specs("x", shape=(1, 4, "t"))) == ()


def test_a_star_stands_for_the_same_text_on_both_sides():
    outputs, inputs = specs("new.0.k", "new.1.k", "logits"), specs("old.1.k", "old.0.k", "ids")
    found = carried(outputs, inputs, ["new.*=old.*"])
    assert pairs(found) == [("new.1.k", "old.1.k"), ("new.0.k", "old.0.k")]
    assert carried(specs("hn"), specs("h0"), ["none"]) == ()


@pytest.mark.parametrize("text", ["new.*", "nothing=old", "hn=nothing", "*=h0", "h*n*=h0"])
def test_a_pair_that_cannot_be_is_refused(text):
    with pytest.raises(UsageError) as caught:
        carried(specs("hn"), specs("h0"), [text])
    assert caught.value.slug == "carry-unknown"


def test_an_input_that_gets_two_outputs_or_another_shape_is_refused():
    for outputs, asked in ((specs("a", "b"), ["a=h0", "b=h0"]), (specs("a", shape=(3,)), ["a=h0"])):
        with pytest.raises(UsageError) as caught:
            carried(outputs, specs("h0"), asked)
        assert caught.value.slug == "carry-misfit"


def test_the_axis_that_grows_has_another_name_in_the_output():
    (grows,) = specs("present.0.key", shape=("batch", 2, "past + sequence", 8))
    (given,) = specs("past_key_values.0.key")
    assert grown_axes(grows, given) == (2,)
    assert grown_axes(given, given) == ()
    (nameless,) = specs("x", shape=(None, 2, None, 8))
    assert grown_axes(nameless, nameless) == (2,)
