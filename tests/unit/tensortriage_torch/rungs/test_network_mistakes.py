"""What is no fault of an export: a network that is another each time, and a file that draws random numbers."""

import dataclasses
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from models import parse
from tensortriage.engines.spec import EngineSpec
from tensortriage_torch.premises import read_premises
from tensortriage_torch.rungs.network_mistakes import Subject, changes, other_statistics, random_in_file
from tensortriage_torch.worker.premises import by_own_statistics

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


INSTANCES, BATCHES = "of each instance: .* exchange each for BatchNorm", "of each input: .* evaluation mode"


@pytest.mark.parametrize(("kind", "words"), [("InstanceNorm1d", INSTANCES), ("BatchNorm2d", BATCHES)])
def test_statistics_that_a_file_does_not_use_are_told_where_the_network_without_them_is_the_file(kind, words):
    model = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    own = np.array([1, 2], np.float32)
    premises = dataclasses.replace(SOUND, normalizing={"body.norm": kind}, own=(own,))

    class Files(Subject):
        def agrees(self, values, feed=None):
            return np.array_equal(values["y"], own)

    inv = SimpleNamespace(model=model)
    found = other_statistics(Files(inv, SUBJECT.network, None), premises)
    assert f"'body.norm' ({kind})" in found
    assert re.search(words, found)
    assert not other_statistics(Files(inv, SUBJECT.network, None), dataclasses.replace(premises, own=(own + 1,)))
    assert not other_statistics(Files(inv, SUBJECT.network, None), SOUND)


@pytest.mark.parametrize("kind", ["InstanceNorm1d", "BatchNorm1d"])
def test_a_network_that_normalizes_by_the_statistics_of_its_input_alone_is_the_one_in_training(kind):
    torch = pytest.importorskip("torch")
    norm = getattr(torch.nn, kind)(3, track_running_stats=True)
    norm.running_mean.fill_(0.5)
    network = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 1), norm, torch.nn.Dropout(0.5)).eval()
    x = torch.randn(4, 2, 5)
    named, (found,) = by_own_statistics(torch, network, lambda: ((x,), {}))
    assert named == {"1": kind}
    dims = (2,) if kind == "InstanceNorm1d" else (0, 2)
    before = network[0](x)
    right = (before - before.mean(dims, keepdim=True)) / (before.var(dims, unbiased=False, keepdim=True) + 1e-5).sqrt()
    assert torch.allclose(found, right, atol=1e-5)
    assert torch.equal(norm.running_mean, torch.full((3,), 0.5))
    assert not norm.training
    assert by_own_statistics(torch, torch.nn.ReLU(), lambda: ((x,), {})) == ({}, [])
