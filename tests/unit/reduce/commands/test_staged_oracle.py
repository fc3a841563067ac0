"""How a command's or a person's judgement of a piece becomes a verdict, and what a replay says instead."""

import pytest

from models import chain
from tensortriage.errors import DataError, UsageError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.commands.staged_oracle import StagedOracle
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.pieces.polygraphy_modes import LAST, Phases
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.failure_rules import Ruling
from tensortriage.runs.commands.replay import Replay, load_replay
from tensortriage.runs.commands.stages import Stages
from tensortriage.search.problem import CandidateOutcome, OracleVerdict
from tensortriage.search.search_result import SearchResult

SAME, OTHER, PASS, UNRESOLVED = CandidateOutcome
FAILED, PASSED = Ruling(True, "exit code 1", "it failed"), Ruling(False, "", "it passed")


@pytest.fixture
def bench(tmp_path):
    """Return what makes an oracle whose judge rules as told, with what it was shown and what was sorted."""

    class Bench:
        def __init__(self):
            self.shown, self.sorted, self.rulings = [], [], []
            self.pieces = Pieces(chain(3), specs=value_specs(chain(3)))
            self.names = self.pieces.items

        def oracle(self, *rulings, phases=None, **given):
            self.rulings = list(rulings)
            self.stages = Stages(tmp_path / "piece.onnx", jobs=1, private=(), scratch=tmp_path, keep=False)
            return StagedOracle(
                self.pieces, self.stages, judge=self.judge, phases=phases or Phases(),
                sort=lambda word, iteration, _: self.sorted.append((word, iteration)), **given,
            )  # fmt: skip

        def judge(self, stage, iteration, nodes):
            self.shown.append((iteration, nodes, len(Model.load(stage.artifact).graph.nodes)))
            return self.rulings.pop(0)

    made = Bench()
    yield made
    made.stages.close()


def expecting(oracle, signature):
    """Let an oracle look for a failure."""
    oracle.expected = signature
    return oracle


def test_a_piece_is_shown_as_a_file_and_numbered(bench):
    oracle = bench.oracle(FAILED, PASSED)
    assert oracle(bench.names[:2], 0).outcome is SAME
    assert oracle(bench.names[:1], 0).outcome is PASS
    assert bench.shown == [(0, 2, 2), (1, 1, 1)]
    assert bench.sorted == [("bad", 0), ("good", 1)]


@pytest.mark.parametrize(
    ("ruling", "outcome", "folder"),
    [
        (FAILED, SAME, "bad"),
        (PASSED, PASS, "good"),
        (Ruling(True, "exit code 2", ""), OTHER, "other"),
        (Ruling(False, "signal 11", "it is ignored"), OTHER, "good"),
        (Ruling(None, "timeout", "it took too long"), UNRESOLVED, "other"),
        (Ruling(True, "exit code 127", "no such program"), OTHER, "other"),
    ],
)
def test_the_failure_of_the_whole_is_the_one_searched_for(bench, ruling, outcome, folder):
    verdict = expecting(bench.oracle(ruling), "exit code 1")(bench.names[:1], 0)
    assert (verdict.outcome, verdict.detail) == (outcome, ruling.reason)
    assert bench.sorted == [(folder, 0)]


def test_what_is_searched_for_is_what_the_premise_saw(bench):
    oracle = bench.oracle(FAILED)
    premise = SearchResult.__new__(SearchResult)
    object.__setattr__(premise, "verdict", OracleVerdict(SAME, "exit code 7"))
    oracle.expect(premise)
    assert oracle(bench.names[:1], 0).outcome is OTHER


@pytest.mark.parametrize("signature", ["exit code 127", "exit code 126"])
def test_a_command_that_cannot_be_started_is_an_error(bench, signature):
    with pytest.raises(UsageError) as caught:
        bench.oracle(Ruling(True, signature, "not found"))(bench.names[:1], 0)
    assert caught.value.slug == "check-program-missing"


def test_what_is_no_longer_needed_tells_nothing(bench, tmp_path):
    replay = Replay(tmp_path / "r.json", "x")
    oracle = bench.oracle(FAILED, replay=replay)
    with oracle.abandoning():
        assert oracle(bench.names[:1], 0).outcome is UNRESOLVED
    assert bench.sorted == []
    assert not (tmp_path / "r.json").exists()


def test_verdicts_are_replayed_by_candidate_and_attempt(bench, tmp_path):
    oracle = bench.oracle(FAILED, PASSED, replay=Replay(tmp_path / "r.json", "x"))
    oracle(bench.names[:2], 0)
    oracle(bench.names[:2], 1)
    entries = load_replay(tmp_path / "r.json", "x")
    assert [(entry.iteration, entry.attempt, entry.nodes, entry.outcome) for entry in entries] == [
        (0, 0, 2, "same"), (1, 1, 2, "pass"),
    ]  # fmt: skip
    assert {entry.candidate for entry in entries} == {digest(bench.names[:2])}
    known = {(entry.candidate, entry.attempt): OracleVerdict(CandidateOutcome(entry.outcome)) for entry in entries}
    again = bench.oracle(known=known)
    assert [again(bench.names[:2], attempt).outcome for attempt in (0, 1)] == [SAME, PASS]
    assert len(bench.shown) == 2


def test_a_check_that_ends_everything_is_a_failure_in_the_twin(bench, tmp_path):
    replay = Replay(tmp_path / "r.json", "x")
    with pytest.raises(IndexError):  # the judge does not come back
        bench.oracle(replay=replay)(bench.names[:1], 0)
    (entry,) = load_replay(replay.twin, "x")
    assert (entry.outcome, entry.success, entry.nodes) == ("same", False, 1)


def test_a_replay_of_polygraphys_is_taken_by_number_and_size(bench):
    phases = Phases(apart=True)
    phases.begin(LAST)
    foreign = {
        (LAST, 0): (2, OracleVerdict(SAME)),
        (LAST, 1): (None, OracleVerdict(PASS)),
        (LAST, 2): (3, OracleVerdict(SAME)),
    }
    oracle = expecting(bench.oracle(phases=phases, foreign=foreign), "exit code 1")
    assert oracle(bench.names[:2], 0) == OracleVerdict(SAME, "exit code 1")
    assert oracle(bench.names[:1], 0) == OracleVerdict(PASS)
    with pytest.raises(DataError) as caught:
        oracle(bench.names[:1], 0)
    assert caught.value.slug == "replay-foreign"
    assert bench.shown == []
