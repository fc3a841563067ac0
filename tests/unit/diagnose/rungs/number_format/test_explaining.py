"""What is held against a prediction: outputs that fail, and what was seen inside."""

import numpy as np

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import Limit
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.rungs.number_format.explaining import counted, held
from tensortriage.envelope.floors import Floors
from tensortriage.inputs.feed import Feed, Origin

RIGHT = np.random.default_rng(0).standard_normal(4096)
NOISE = np.random.default_rng(1).standard_normal(4096)
NOISE *= np.sqrt(np.mean(RIGHT**2) / np.mean(NOISE**2))


def result(**errors):
    """Return outputs that are off by so much; those of less than 1e-6 pass."""
    metrics = {name: measure(RIGHT, RIGHT + error * NOISE) for name, error in errors.items()}
    found = {name: error_of(figure) for name, figure in metrics.items()}
    within = {name: error < 1e-6 for name, error in found.items()}
    return FeedResult(Feed("feed", {}, Origin.REAL), metrics, Floors({}, {}, {}, "envelope"), found, within)


def test_outputs_that_fail_are_held_against_their_predictions():
    found = held(result(a=1e-3, b=2e-3, c=1e-7), {"a": 1e-3, "b": 1e-3})
    assert (set(found.gaps), found.beyond, found.explains) == ({"a", "b"}, ["b"], False)
    assert found.worst == "b"
    assert found.why_not == "output 'b' is +6.0 dB against what that predicts"


def test_a_value_inside_has_to_be_explained_as_well():
    inside = ("hidden", 2e-3, Limit(1e-3, Basis.FORMAT))
    found = held(result(a=1e-3), {"a": 1e-3}, inside=inside)
    assert (found.beyond, found.explains) == ([], False)
    assert found.why_not == "'hidden' inside is off by 0.2 %, at most 0.1 % is expected"


def test_nothing_is_said_where_all_is_explained():
    found = held(result(a=1e-3), {"a": 1e-3})
    assert (found.explains, found.why_not) == (True, "")


def test_operators_are_counted():
    assert counted(["Conv", "Gemm", "Conv"]) == "2 Conv and Gemm"
