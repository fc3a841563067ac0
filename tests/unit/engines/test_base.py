"""The plain data at the border of engines: limits of runs, and choices in words."""

import dataclasses

import pytest

from tensortriage.engines.base import RUN_FACTOR, RUN_SECONDS, Availability, Choice, Limits, Plan, Region


@pytest.mark.parametrize(
    ("limits", "reference_seconds", "seconds"),
    [
        (Limits(), 0.0, RUN_SECONDS),
        (Limits(), RUN_SECONDS / RUN_FACTOR / 2, RUN_SECONDS),
        (Limits(), RUN_SECONDS, RUN_FACTOR * RUN_SECONDS),
        (Limits(run_seconds=0.0), RUN_SECONDS, 0.0),
        (Limits(run_seconds=5.0), RUN_SECONDS, 5.0),
    ],
)
def test_a_run_may_take_what_the_user_says_else_a_multiple_of_the_reference(limits, reference_seconds, seconds):
    assert limits.longest_run(reference_seconds) == seconds
    if not reference_seconds:
        assert limits.longest_run() == seconds


def test_builds_are_limited_and_memory_is_not_unless_it_is_said():
    assert Limits().build_seconds > 0
    assert Limits().memory_bytes is None


@pytest.mark.parametrize(
    ("choice", "label"),
    [
        (Choice("l", "7"), "7"),
        (Choice("l", "7", "kernel"), "kernel 7"),
        (Choice("l", "0x7", "kernel_0x7"), "kernel_0x7"),
        (Choice("l", "7", "kernel", inputs=("a", "b")), "kernel 7 (a, b -> )"),
        (Choice("l", "7", outputs=("c",)), "7 ( -> c)"),
        (Choice("l", "", "kernel", ("a",), ("c",)), "kernel (a -> c)"),
    ],
)
def test_a_choice_in_words_holds_all_that_tells_it_apart(choice, label):
    assert choice.label == label
    aside = dataclasses.replace(choice, layer="m", nodes=("n",), milliseconds=3.0, key="k")
    assert aside.label == label


def test_what_crosses_the_border_stays_as_it_is():
    for item, field in ((Limits(), "run_seconds"), (Availability(usable=True), "usable"), (Plan(()), "device")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(item, field, None)
    assert len({Region("r", ("a",)), Region("r", ("a",)), Region("r", ())}) == 2
