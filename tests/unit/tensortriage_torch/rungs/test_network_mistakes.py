"""What is no fault of an export: a network that is another each time, and a file that draws random numbers."""

import dataclasses
import math

import pytest

from models import parse
from tensortriage.engines.spec import EngineSpec
from tensortriage_torch.premises import read_premises
from tensortriage_torch.rungs.network_mistakes import Subject, changes, random_in_file

SOUND = read_premises({"again": {}, "calls": {}, "paths": [], "shapes": {}}, {})
SUBJECT = Subject(None, EngineSpec.parse("torch:net.py:make"), None, error=0.1)


def told(training=False, error=0.1, **found):
    subject = dataclasses.replace(SUBJECT, training=training, error=error)
    return changes(subject, dataclasses.replace(SOUND, **found))


def test_a_network_that_is_the_same_each_time_is_no_mistake():
    assert told() is None


def test_weights_that_differ_at_every_making_are_named_the_farthest_first():
    found = told(made_again={"a.weight": 0.5, "b.weight": 1.5})
    assert found.what == (
        "make() gives other weights at every call: 2 differ between two calls, 'b.weight' by 150 %, 'a.weight' by 50 %"
    )
    assert "torch.manual_seed" in found.cure


def test_buffers_that_calls_change_are_no_other_weights():
    calls = {"state": 0.3, "buffers": ["seen"], "module": "last"}
    found = read_premises({"again": {"differ": {"seen": 1.0}}, "calls": calls, "paths": [], "shapes": {}}, {})
    assert found.made_again == {}
    assert "calls change 'seen'" in changes(SUBJECT, found).what


@pytest.mark.parametrize("error", [0.1, math.inf, math.nan])
def test_results_that_vary_are_a_mistake_where_they_explain_the_error(error):
    assert "in act" in told(random=0.2, module="act", error=error).what
    assert "in forward" in told(random=0.2, error=error).what
    assert "training mode" in told(random=0.2, training=True, error=error).what


def test_results_that_vary_by_a_rounding_explain_nothing():
    assert told(random=1e-7) is None
    assert told(state=1e-7, training=True) is None


def test_a_file_that_draws_random_numbers_cannot_be_compared():
    graph = parse("g (float[2] x) => (float[2] y) { [noise] n = RandomNormalLike(x)  y = Add(x, n) }").graph
    assert "RandomNormalLike 'noise'" in random_in_file(graph).what
    assert random_in_file(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }").graph) is None
