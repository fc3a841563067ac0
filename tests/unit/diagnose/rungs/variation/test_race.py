"""Where a race is looked for: with every tensor marked, op by op in one session, and in new sessions."""

import numpy as np
import pytest

from diagnosing import CHAIN_FEED, softmax_chain
from tensortriage.diagnose.rungs.variation.race import first_to_differ, same
from tensortriage.search.statistics.repeats import Rate

ALWAYS = Rate(2, 2)
RACE = "faulty:kind=nondeterministic,node=softmax"


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (np.float32([1, np.nan]), np.float32([1, np.nan]), True),
        (np.float32([1, 2]), np.float32([1, 3]), False),
        (np.float32([1, 2]), np.float32([1]), False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array(["a"]), np.array(["a"]), True),
        (np.array(["a"]), np.array(["b"]), False),
    ],
)
def test_equal_numbers_are_the_same(one, other, equal):
    assert same(one, other) is equal


def test_the_first_tensor_that_differs_is_the_one_where_it_begins(investigate):
    inv = investigate(softmax_chain(), CHAIN_FEED, target=RACE)
    culprit, where = first_to_differ(inv, inv.question.feeds[0], ALWAYS)
    assert (culprit.node, culprit.op_type, culprit.value) == ("softmax", "Softmax", "s")
    assert where == "with every tensor marked"


def test_what_the_run_before_left_shows_because_another_feed_is_run_between(investigate):
    inv = investigate(softmax_chain(), CHAIN_FEED, {"x": 2 * CHAIN_FEED["x"]}, target="faulty:kind=stale,node=softmax")
    culprit, where = first_to_differ(inv, inv.question.feeds[0], ALWAYS)
    assert (culprit.node, where) == ("softmax", "with every tensor marked")


def test_what_builds_differ_in_shows_in_new_sessions_only(investigate, tmp_path):
    target = f"varying:kind=scale,node=softmax,tactics=2,draws={tmp_path / 'draws'}"
    inv = investigate(softmax_chain(), CHAIN_FEED, target=target)
    culprit, where = first_to_differ(inv, inv.question.feeds[0], Rate(1, 4))
    assert (culprit.node, where) == ("softmax", "each op alone in new sessions")


def test_an_engine_that_does_not_differ_has_no_race(investigate):
    inv = investigate(softmax_chain(), CHAIN_FEED)
    culprit, why = first_to_differ(inv, inv.question.feeds[0], ALWAYS)
    assert culprit is None
    assert "no tensor differs" in why


def test_an_engine_that_refuses_is_said_to(investigate):
    inv = investigate(softmax_chain(), CHAIN_FEED, target="faulty:kind=build-failure,node=tanh")
    culprit, why = first_to_differ(inv, inv.question.feeds[0], ALWAYS)
    assert culprit is None
    assert why == "unknown: each op alone in new sessions the target refuses to build the model"


def test_what_was_seen_is_remembered(investigate):
    inv = investigate(softmax_chain(), CHAIN_FEED, target=RACE)
    first = first_to_differ(inv, inv.question.feeds[0], ALWAYS)
    runs = inv.lab.tally.checks
    assert first_to_differ(inv, inv.question.feeds[0], ALWAYS) == first
    assert inv.lab.tally.checks == runs
