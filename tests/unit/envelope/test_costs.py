"""A cost that is NaN or Inf allows nothing, whichever function finds it."""

import contextlib
import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.limits import limits_of
from tensortriage.envelope import costs
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import Explanation
from tensortriage.envelope.judge import Judge
from tensortriage.envelope.limits import healthy
from tensortriage.envelope.setting import Floors
from tensortriage.inputs.feed import Feed
from tensortriage.values.dtype import Precision

RIGHT = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
FLOORS = Floors({"y": 1e-6}, {"y": 1e-6}, {}, "envelope")
NOTHING = [math.nan, math.inf]


@pytest.fixture
def setting():
    """Return what is judged: an output that another run of the reference gives back as it is told to."""

    @contextlib.contextmanager
    def session(*_):
        yield lambda *_, **__: {"y": RIGHT}

    return SimpleNamespace(
        lab=SimpleNamespace(session=session), model=None, feed=Feed("f", {"x": RIGHT}, "real"), reference=None,
        precision=Precision.FP32, outputs=["y"], values=("y",), right={"y": RIGHT}, parts=(),
    )  # fmt: skip


def explains(setting, cost, floors=FLOORS):
    """Say whether a row explains an output that is off by a hundredth."""
    row = Explanation(name="row", words="", source="", cost=cost, draws=2, rewrite=lambda model: "another")
    judge = Judge(setting, floors, {"y": measure(RIGHT, 1.01 * RIGHT)})
    return judge.held((row,), ["y"]).explains


@pytest.mark.parametrize(
    "errors", [[0.02, 0.02], *([0.02, each] for each in NOTHING), *([each, 0.02] for each in NOTHING)]
)
def test_draws_and_moved_inputs_are_no_better_than_the_worst_of_them(setting, monkeypatch, errors):
    finite = all(map(math.isfinite, errors))
    monkeypatch.setattr(costs, "drawn", lambda *_: {"y": errors})
    assert explains(setting, costs.of_draws) is finite
    given = iter(errors)
    monkeypatch.setattr(costs, "difference", lambda *_: next(given))
    assert explains(setting, costs.of_moved_inputs) is finite


@pytest.mark.parametrize("error", [0.02, *NOTHING])
def test_a_rewritten_model_without_numbers_says_nothing(setting, monkeypatch, error):
    monkeypatch.setattr(costs, "output_errors", lambda *_: {"y": error})
    assert explains(setting, costs.of_rewrite) is math.isfinite(error)


@pytest.mark.parametrize("off", [1.02, *NOTHING])
def test_freedoms_without_numbers_say_nothing(setting, monkeypatch, off):
    figures = {"y": measure(RIGHT, off * RIGHT)}
    monkeypatch.setattr(costs, "distances", lambda *_, **__: {"taken": figures})
    monkeypatch.setattr(Healthy, "of", classmethod(lambda *_: Healthy({}, {}, [{"taken": None}], Precision.FP32)))
    assert explains(setting, costs.of_freedoms) is math.isfinite(off)


def test_a_floor_that_is_no_number_is_no_limit(setting):
    nothing = dataclasses.replace(FLOORS, fp32={"y": math.nan}, target={"y": math.nan})
    assert not explains(setting, costs.of_orders, nothing)
    assert not explains(setting, costs.of_format, nothing)
    assert not nothing.limit("y", 4096).allows(0.0)


@pytest.mark.parametrize("chosen", NOTHING)
def test_what_a_class_chooses_without_numbers_widens_no_limit(chosen):
    limit = healthy(4096, 1e-6, None, chosen, freedoms=("row",))
    assert (limit.error, limit.basis) == (pytest.approx(1e-5), Basis.FLOOR)


@pytest.mark.parametrize(("number", "excused"), [(-1.5625, True), (-1.5, False)], ids=["on a tie", "on none"])
def test_what_ties_move_is_excused(investigate, number, excused):
    """Expected: -1.5625 times 5.12 is -8, or a rounding above; the inputs of a whole number cannot show that."""
    text = "g (float[64] x) => (int64[64] y) <float s = {5.12}> { a = Mul(x, s) b = Floor(a) y = Cast<to = 7>(b) }"
    inv = investigate(text, {"x": np.full(64, number, np.float32)}, target="onnxruntime")
    feed = inv.question.feeds[0]
    right = np.asarray(inv.golden.outputs(feed)["y"])
    figures = {"y": measure(right, right + (np.arange(64) == 3))}
    assert limits_of(inv, feed, figures, apart={}, asked=True)["y"].allows(1 / 64) is excused
