"""The search with an engine as judge: what it keeps, in how many builds, and what it says when precision is no cure."""

import contextlib
import itertools

import numpy as np
import pytest

from precision_numbers import write_loud
from reducing import Deaf
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.question import Question
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.precision.search.by_engine import EngineSearch
from tensortriage.precision.search.request import GoalRequest, PrecisionMode, PrecisionRequest
from tensortriage.precision.selection.engine_confirmation import NotPrecisionError
from tensortriage.runs.case import Case
from tensortriage.values.dtype import Precision

FP16 = EngineSpec("emulate", {"precision": "fp16"})


@pytest.fixture
def loud(tmp_path):
    """Write a model with two Sums that fp16 cannot hold; return their names."""
    return write_loud(tmp_path)


@contextlib.contextmanager
def searching(folder, target=FP16, precision=Precision.FP16, **wanted):
    """Yield a search in a model on its feed, and the lines it has told."""
    wanted = {"goal": GoalRequest(sqnr_db=40.0), "target": str(target), "output": None, **wanted}
    feed = Feed("m", dict(np.load(folder / "m.npz")), Origin.REAL)
    model = Model.load(folder / "m.onnx")
    told = Deaf()
    told.heard = []
    told.tell = told.heard.append
    with Case(folder / "case") as case:
        inv = Investigation(Question(model=model, feeds=(feed,), reference=PLAIN, target=target), case)
        with contextlib.closing(inv):
            search = EngineSearch(
                PrecisionRequest(model=folder / "m.onnx", case=folder / "case", **wanted),
                inv,
                told,
                precision,
                floors_of=lambda feed, names: dict.fromkeys(names, 1e-7),
                stands_out=lambda feed: [],
            )
            with contextlib.closing(search):
                yield search, told.heard


def test_the_nodes_that_the_format_cannot_hold_are_kept_and_no_others(tmp_path, loud):
    with searching(tmp_path, output=tmp_path / "mixed.onnx") as (search, told):
        plan = search.plan()
    assert set(plan.kept) >= set(loud)
    assert {keeping.node for keeping in plan.nodes} == set(loud)
    assert (plan.minimality, plan.builds) == ("one-minimal", search.builds)
    assert plan.error.measured <= 10 ** (-40 / 20) < plan.error.as_asked  # 40 dB
    assert (plan.asked, plan.deployed, plan.inputs) == ("engine", str(FP16), "real")
    assert plan.files["model"] == str(tmp_path / "mixed.onnx")
    assert plan.casts > 0
    assert any(line.startswith("emulation keeps 2 of ") for line in told)
    # every point of the curve that was measured is a build of its own
    assert len([each for each in plan.pareto if each.measured]) <= plan.builds


def test_bisection_keeps_everything_up_to_the_last_of_them(tmp_path, loud):
    with searching(tmp_path, mode=PrecisionMode.BISECT) as (search, _):
        plan = search.plan()
        items = search._stage.items
    last = max(items.index(name) for name in loud)
    assert [keeping.node for keeping in plan.nodes] == list(items[: last + 1])
    assert (plan.minimality, plan.mode) == ("prefix", "bisect")


def test_good_enough_as_it_is_needs_no_node(tmp_path):
    write_loud(tmp_path)
    with searching(tmp_path, EngineSpec("emulate", {"precision": "bf16"}), Precision.BF16,
                   goal=GoalRequest(sqnr_db=20.0)) as (search, _):  # fmt: skip
        plan = search.plan()
    assert (plan.kept, plan.nodes) == ((), ())
    assert plan.error.measured <= 0.1
    assert search.emulation.runs <= 2


def test_what_no_format_makes_good_enough_is_not_precision(tmp_path, loud):
    readings = itertools.chain([1.0], itertools.repeat(0.5))  # the reference's own first
    never = GoalRequest(metric=lambda outputs, feed: next(readings), metric_min=0.9)
    with searching(tmp_path, goal=never) as (search, _), pytest.raises(NotPrecisionError) as found:
        search.plan()
    assert found.value.slug == "precision-not-the-cause"


def test_what_types_alone_cannot_say_is_not_written(tmp_path, loud):
    with (
        pytest.raises(UsageError) as found,
        searching(
            tmp_path, EngineSpec("emulate", {"precision": "fp8e5m2"}), Precision.FP8E5M2, output=tmp_path / "mixed.onnx"
        ),
    ):
        pass
    assert found.value.slug == "precision-not-typed"
    assert "--target emulate:precision=fp8e5m2" in found.value.cure
