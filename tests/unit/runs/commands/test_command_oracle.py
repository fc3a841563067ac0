"""How a command's or a person's judgement of a piece becomes a verdict, and what a replay says instead."""

import json
from pathlib import Path

import pytest

from models import chain
from tensortriage.errors import DataError, UsageError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.commands.command_oracle import FROM_REPLAY, CommandOracle, ShownModel, ShownTo
from tensortriage.runs.commands.failure_rules import Ruling
from tensortriage.runs.commands.phases import LAST, Phases
from tensortriage.runs.commands.replay import load_replay
from tensortriage.search.problem import CandidateOutcome, OracleVerdict

SAME, OTHER, PASS, UNRESOLVED = CandidateOutcome
FAILED, PASSED = Ruling(True, "exit code 1", "it failed"), Ruling(False, "", "it passed")


BOUND_TO = "model and check"


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Return what makes an oracle whose command ends as told, with what it was shown and what was sorted."""
    monkeypatch.chdir(tmp_path)

    class Bench:
        def __init__(self, case):
            self.case, self.shown, self.sorted, self.rulings, self.made = case, [], [], [], []
            self.pieces = Pieces(chain(3), specs=value_specs(chain(3)))
            self.names = self.pieces.items

        def oracle(self, *rulings, **given):
            self.rulings = list(rulings)
            to = ShownTo(check=CheckSpec(words=("judge",)), artifact=Path("piece.onnx"), keep_artifact=False,
                         tell=lambda _: None, **given)  # fmt: skip
            self.made.append(CommandOracle(to, self.piece, self.case, BOUND_TO))
            self.made[-1]._checker = self
            return self.made[-1]

        def piece(self, candidate):
            return ShownModel(digest(candidate), len(candidate), lambda: self.pieces.cut(candidate))

        def check(self, iteration, *, label, folder):
            nodes = len(Model.load("piece.onnx").graph.nodes)
            self.shown.append((iteration, nodes))
            return self.rulings.pop(0)

        def sort(self, word, iteration, *, label, folder):
            self.sorted.append((word, iteration))

        def kill_running(self):
            pass

        close = kill_running

    with Case(tmp_path / "case") as case:
        made = Bench(case)
        yield made
        for oracle in made.made:
            oracle.close()


def expecting(oracle, signature):
    """Let an oracle look for a failure."""
    oracle.expected = signature
    return oracle


def test_a_piece_is_shown_as_a_file_and_numbered(bench):
    oracle = bench.oracle(FAILED, PASSED)
    assert oracle(bench.names[:2], 0).outcome is SAME
    assert oracle(bench.names[:1], 0).outcome is PASS
    assert bench.shown == [(0, 2), (1, 1)]
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
    oracle.expect([OracleVerdict(PASS), OracleVerdict(SAME, "exit code 7")])
    assert oracle(bench.names[:1], 0).outcome is OTHER


@pytest.mark.parametrize("signature", ["exit code 127", "exit code 126"])
def test_a_command_that_cannot_be_started_is_an_error(bench, signature):
    with pytest.raises(UsageError) as caught:
        bench.oracle(Ruling(True, signature, "not found"))(bench.names[:1], 0)
    assert caught.value.slug == "check-program-missing"


def test_what_is_no_longer_needed_tells_nothing(bench, tmp_path):
    oracle = bench.oracle(FAILED, save_replay=tmp_path / "r.json")
    oracle._abandoned.set()
    assert oracle(bench.names[:1], 0).outcome is UNRESOLVED
    assert bench.sorted == []
    assert not (tmp_path / "r.json").exists()


def test_verdicts_are_replayed_by_candidate_and_attempt(bench, tmp_path):
    oracle = bench.oracle(FAILED, PASSED, save_replay=tmp_path / "r.json")
    oracle(bench.names[:2], 0)
    oracle(bench.names[:2], 1)
    oracle.known(bench.names[:1], OracleVerdict(PASS))
    entries = load_replay(tmp_path / "r.json", BOUND_TO)
    assert [(entry.iteration, entry.attempt, entry.nodes, entry.outcome) for entry in entries] == [
        (0, 0, 2, "same"), (1, 1, 2, "pass"), (2, 0, 1, "pass"),
    ]  # fmt: skip
    assert [entry.candidate for entry in entries[1:]] == [digest(bench.names[:2]), digest(bench.names[:1])]
    again = bench.oracle(load_replay=tmp_path / "r.json")
    assert [again(bench.names[:2], attempt).outcome for attempt in (0, 1)] == [SAME, PASS]
    assert len(bench.shown) == 2


def test_a_check_that_ends_everything_is_a_failure_in_the_twin(bench, tmp_path):
    with pytest.raises(IndexError):  # the judge does not come back
        bench.oracle(save_replay=tmp_path / "r.json")(bench.names[:1], 0)
    (entry,) = load_replay(tmp_path / "r_skip_current.json", BOUND_TO)
    assert (entry.outcome, entry.success, entry.nodes) == ("same", False, 1)


def test_a_replay_of_polygraphys_is_taken_by_number_and_size(bench, tmp_path):
    phases = Phases(apart=True)
    phases.begin(LAST)
    entries = {f"_N{number}_{LAST}": {"state": {} if nodes is None else {"num_nodes": nodes}, "success": success,
                                      "iteration_info": {"iteration": number}}
               for number, (nodes, success) in enumerate([(2, False), (None, True), (3, False)])}  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(entries))
    oracle = expecting(bench.oracle(phases=phases, load_replay=tmp_path / "r.json"), "exit code 1")
    assert oracle(bench.names[:2], 0) == OracleVerdict(SAME, "exit code 1", FROM_REPLAY)
    assert oracle(bench.names[:1], 0) == OracleVerdict(PASS, "", FROM_REPLAY)
    with pytest.raises(DataError) as caught:
        oracle(bench.names[:1], 0)
    assert caught.value.slug == "replay-foreign"
    assert bench.shown == []
