"""The search with an engine as judge: what it keeps, in how many builds, and what it says when precision is no cure."""

import contextlib
import itertools
import shutil
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from precision_numbers import write_loud
from reducing import Deaf
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.precision.search.by_engine import EnginePremise, EngineSearch, on_engine
from tensortriage.precision.search.request import GoalRequest, PrecisionMode, PrecisionRequest
from tensortriage.precision.selection.engine_confirmation import NotPrecisionError
from tensortriage.runs.case import Case
from tensortriage.runs.questions.question import Question
from tensortriage.values.dtype import Precision

EXAMPLES = Path(__file__).parents[4] / "examples"
FP16 = EngineSpec("emulate", {"precision": "fp16"})


@pytest.fixture
def loud(tmp_path):
    """Write a model with two Sums that fp16 cannot hold; return their names."""
    return write_loud(tmp_path)


class Stopping(Deaf):
    """Keeps what it is told, of progress as well, and stops the search at one of the lines."""

    def __init__(self, stop_at=None):
        self.heard, self.lines, self.stop_at = [], 0, stop_at

    def tell(self, text):
        self.heard.append(text)
        self.progress(text)

    def progress(self, text):
        self.lines += 1
        if self.lines == self.stop_at:
            raise KeyboardInterrupt


@contextlib.contextmanager
def searching(folder, target=FP16, precision=Precision.FP16, *, stop_at=None, earlier=(), **wanted):
    """Yield a search in a model on its feed, and the lines it has told."""
    wanted = {"goal": GoalRequest(sqnr_db=40.0), "target": str(target), "output": None, **wanted}
    feed = Feed("m", dict(np.load(folder / "m.npz")), Origin.REAL)
    model = Model.load(folder / "m.onnx")
    told = Stopping(stop_at)
    with Case(folder / "case") as case:
        inv = Investigation.begin(Question(model=model, feeds=(feed,), reference=PLAIN, target=target), case)
        with contextlib.closing(inv.lab):
            request = PrecisionRequest(model=folder / "m.onnx", case=folder / "case", **wanted)
            premise = EnginePremise(
                source=inv.golden,
                floors_of=lambda feed, names: dict.fromkeys(names, 1e-7),
                stands_out=lambda feed: [],
            )
            with on_engine(request, premise, told, precision) as subject:
                yield EngineSearch(subject, premise.stands_out, earlier), told


def test_the_nodes_that_the_format_cannot_hold_are_kept_and_no_others(tmp_path, loud):
    with searching(tmp_path, output=tmp_path / "mixed.onnx") as (search, told):
        plan = search.plan()
    assert set(plan.kept) >= set(loud)
    assert {keeping.node for keeping in plan.nodes} == set(loud)
    assert (plan.minimality, plan.builds) == ("one-minimal", search._on.candidates.asked)
    assert plan.error.measured <= 10 ** (-40 / 20) < plan.error.as_asked  # 40 dB
    assert (plan.asked, plan.deployed, plan.inputs) == ("engine", str(FP16), "real")
    assert plan.files["model"] == str(tmp_path / "mixed.onnx")
    assert plan.casts > 0
    assert any(line.startswith("emulation keeps 2 of ") for line in told.heard)
    # every point of the curve that was measured is a build of its own
    assert len([each for each in plan.pareto if each.measured]) <= plan.builds


def test_bisection_keeps_everything_up_to_the_last_of_them(tmp_path, loud):
    with searching(tmp_path, mode=PrecisionMode.BISECT) as (search, _):
        plan = search.plan()
        items = search._on.stage.items
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
    assert search._on.emulation.runs <= 2


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


def error_of(folder):
    """Return the largest relative error of the mixed model, as ONNX Runtime computes it."""
    feed = dict(np.load(folder / "m.npz"))
    answers = []
    for path in (folder / "m.onnx", folder / "mixed.onnx"):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        answers.append(session.run(None, feed)[0].astype(np.float64))
    return np.sqrt(np.mean((answers[1] - answers[0]) ** 2) / np.mean(answers[0] ** 2))


ORT = EngineSpec("onnxruntime", {"precision": "fp16"})
SEARCHES = {
    "emulation": {"target": FP16},
    "engine": {"target": ORT},
    "bisect": {"target": ORT, "mode": PrecisionMode.BISECT},
    "latency": {"target": ORT, "latency": True},
    "int8": {"target": EngineSpec("onnxruntime", {}), "precision": Precision.INT8, "goal": GoalRequest(sqnr_db=42.0)},
}


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", SEARCHES)
def test_wherever_it_is_interrupted_a_model_that_is_good_enough_is_left(tmp_path, loud, kind):
    """At every line that it tells; what was confirmed never gets worse, and the resumed search asks nothing twice."""
    wanted = SEARCHES[kind] | {"output": tmp_path / "mixed.onnx"}
    if kind == "int8":
        shutil.copy(EXAMPLES / "digits_cnn.onnx", tmp_path / "m.onnx")
        np.savez(tmp_path / "m.npz", image=np.load(EXAMPLES / "digits.npz")["image"])
    with searching(tmp_path, **wanted) as (search, told):
        whole = search.plan()
        lines = told.lines
    (tmp_path / "case").rename(tmp_path / "old")
    builds, best, earlier, left = 0, None, (), 0
    for line in range(2, lines + 1, max(1, lines // 12)):
        (tmp_path / "mixed.onnx").unlink()
        try:
            with searching(tmp_path, stop_at=line, earlier=earlier, **wanted) as (search, told):
                plan = search.plan()
        except KeyboardInterrupt:  # before there was anything to choose from, which whoever asks sees to
            assert builds == left == 0
            (tmp_path / "mixed.onnx").touch()
            continue
        left += 1
        builds += plan.builds
        assert plan.files["model"] == str(tmp_path / "mixed.onnx")
        assert error_of(tmp_path) <= (plan.error.measured or plan.error.predicted or 1e-6) * 1.02
        if plan.confirmed:
            assert best is None or len(plan.nodes) <= best
            best, earlier = len(plan.nodes), [node.node for node in plan.nodes]
        else:
            assert best is None
    assert left >= 3
    with searching(tmp_path, earlier=earlier, **wanted) as (search, told):
        last = search.plan()
    assert (last.kept, last.minimality) == (whole.kept, whole.minimality)
    assert builds + last.builds == whole.builds
    with searching(tmp_path, **wanted) as (search, told):
        again = search.plan()
        assert search._on.source.lab.tally.builds == 0
    assert (again.kept, again.builds, again.checks, again.emulated) == (whole.kept, 0, 0, 0)
    assert again.known >= whole.builds
