"""Asking engines for a reduction: what is asked, what a search needs of the answers, and what is written in the end."""

import contextlib
import dataclasses

import numpy as np
import pytest

from engine_scripts import engine_file
from models import of_message, proto
from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.reduce.engines.by_engine import EngineAsking, EnginePremises, EngineRequest
from tensortriage.reduce.failure import FailureKind
from tensortriage.reduce.reduction_result import Effort
from tensortriage.reduce.request import Ends
from tensortriage.runs.case import Case
from tensortriage.runs.questions.question import Question
from tensortriage.search.problem import CandidateOutcome
from tensortriage.search.statistics.repeats import Rate, Repeats

TEXT = """g (float[2, 3] x) => (float[2, 3] y) {
  a = Sin(x)
  w = Constant<value: tensor = float[1] {2.0}>()
  b = Mul(a, w)
  y = Add(b, x)
}"""


@pytest.fixture
def faulty(tmp_path):
    """Return the spec of an engine whose Mul is half as large again."""
    file = engine_file()
    return EngineSpec("script", {"file": str(file), "kind": "scale", "node": "mul", "amount": "1.5"})


@contextlib.contextmanager
def asking(folder, target, *, suspicions=None, wanted=None):
    """Yield what asks an engine about a model on two feeds, of which the second shows more of the fault."""
    message = proto(TEXT)
    for node, name in zip(message.graph.node, ("sin", "constant", "mul", "add"), strict=True):
        node.name = name
    little = Feed("little", {"x": np.full((2, 3), 3.0, np.float32)}, Origin.REAL)  # sin / (x + 2 sin): 0.04
    much = Feed("much", {"x": np.full((2, 3), 0.5, np.float32)}, Origin.REAL)  # 0.33
    question = Question(model=of_message(message), feeds=(little, much), reference=PLAIN, target=target)
    with Case(folder / "case") as case:
        inv = Investigation.begin(question, case)
        tolerance = PolygraphyTolerance(atol={"": 1e-5}, rtol={})
        premises = EnginePremises(
            source=inv.golden,
            tolerance=tolerance,
            judge=lambda: OutputJudge(tolerance, dict, False),
            suspicions=lambda feed: (suspicions if suspicions is not None else {})[feed.name],
            inside=lambda model, feeds: dataclasses.replace(premises),
        )
        request = EngineRequest(
            ends=Ends.BOTH, shrink_seconds=0.0, repeats=Repeats(), say=lambda text: None, wanted=wanted
        )
        made = EngineAsking(premises, request)
        with contextlib.closing(made):
            yield made


def whole(made):
    """Ask how the whole fails, as a search does first."""
    made.oracle.expected = made.oracle.failure(made.pieces.nodes(made.pieces.items))
    return made.failure()


def test_a_piece_fails_as_the_whole_does_exactly_when_it_holds_the_fault(tmp_path, faulty):
    measured = {"much": {"mul": 9.0}}
    with asking(tmp_path, faulty, suspicions=measured) as made:
        assert made.failure() is None  # before the whole was asked
        assert made.suspicion() == {}
        failure = whole(made)
        assert (failure.kind, failure.output, failure.sample) == (FailureKind.WRONG, "y", "much")
        assert made.suspicion() == {"mul": 9.0}  # of the sample that fails worst
        assert made.oracle(("mul",), 0).outcome is CandidateOutcome.SAME
        assert made.oracle(("sin",), 0).outcome is CandidateOutcome.PASS
        assert made.oracle(("add",), 0).outcome is CandidateOutcome.PASS
        # golden values: what the definition of the op gives on the worst sample, and the constant
        assert made._recorded("w") == [2.0]
        assert made._recorded("b") == pytest.approx(2.0 * np.sin(0.5))
        result = tmp_path / "small.onnx"
        written = made.finish(("mul",), result, Rate(1, 1), Effort.WRITE)
        assert written.verified is None
        assert result.exists()
        assert not (tmp_path / "small_repro").exists()
        assert made.finish(("sin",), None, Rate(1, 1), Effort.FULL).verified is False  # it does not fail alone


def test_a_healthy_engine_gives_no_failure_to_search_for(tmp_path):
    with asking(tmp_path, EngineSpec("onnxruntime")) as made:
        assert whole(made) is None
        assert made.finish(("mul",), None, Rate(1, 1), Effort.FULL).verified is False


def test_answers_are_kept_apart_by_engine_and_by_how_the_whole_has_to_fail(tmp_path, faulty):
    found = set()
    for number, (target, wanted) in enumerate(
        [(faulty, None), (faulty, FailureKind.NON_FINITE), (EngineSpec("onnxruntime"), None)]
    ):
        with asking(tmp_path / str(number), target, wanted=wanted) as made:
            found.add(made.identity())
    with asking(tmp_path / "0", faulty) as made:
        assert made.identity() in found
    assert len(found) == 3
