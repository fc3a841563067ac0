"""The search with a command as judge: which candidates it is shown, how often, and what is made of its answers."""

import contextlib
import threading
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from models import chain
from reducing import Deaf
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN
from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.precision.search.by_command import CommandSearch, on_command
from tensortriage.precision.search.command_candidates import shown
from tensortriage.precision.search.request import PrecisionMode, PrecisionRequest
from tensortriage.precision.selection.engine_confirmation import NotPrecisionError
from tensortriage.runs.case import Case
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.commands.command_oracle import ShownTo
from tensortriage.runs.commands.process import Finished
from tensortriage.runs.commands.transcript import Printed
from tensortriage.runs.questions.question import Question
from tensortriage.values.dtype import Precision

NODES = 6


class Judge:
    """Stands for processes that run a command: it passes when all nodes that it needs compute in float32."""

    def __init__(self, *needed, code=1, most=NODES):
        self.needed, self.code, self.most = set(needed), code, most
        self.asked = []
        self._lock = threading.Lock()

    def run(self, command, /):
        path = (command.folder or Path()) / "polygraphy_debug.onnx"
        graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
        types = {info.name: info.type.tensor_type.elem_type for info in (*graph.value_info, *graph.output)}
        wide = {n.name for n in graph.node if n.op_type == "Tanh" and types[n.output[0]] == onnx.TensorProto.FLOAT}
        with self._lock:
            self.asked.append(frozenset(wide))
        return Finished(0 if self.needed <= wide and len(wide) <= self.most else self.code, Printed(), 0.0)

    def kill_running(self):
        pass

    def close(self):
        pass


class Told(Deaf):
    """Keeps what it is told; stops the search at a line that begins so."""

    def __init__(self, stop_at="nowhere"):
        self.lines, self.stop_at = [], stop_at

    def tell(self, text):
        self.lines.append(text)
        if text.startswith(self.stop_at):
            raise KeyboardInterrupt


@pytest.fixture
def search(tmp_path, monkeypatch):
    """Return a function that searches a chain of Tanh with a judge."""
    monkeypatch.chdir(tmp_path)
    model = chain(NODES, "Tanh")
    model.save(tmp_path / "m.onnx")
    feed = Feed("m", {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}, Origin.REAL)

    def searched(judge, *, listener=None, jobs=1, earlier=(), **wanted):
        spec = CheckSpec(words=("judge",))
        request = PrecisionRequest(
            model=tmp_path / "m.onnx", check=spec, low=Precision.FP16, case=tmp_path / "case", **wanted
        )
        listener = listener or Told()
        with Case(request.case) as case:
            question = Question(model=model, feeds=(feed,), reference=PLAIN, target=PLAIN)
            inv = Investigation.begin(question, case, listener=listener)
            to = ShownTo(
                check=spec, artifact=request.artifact, keep_artifact=False, jobs=jobs, where=judge,
                save_replay=request.save_replay, load_replay=request.load_replay, tell=listener.tell,
            )  # fmt: skip
            with contextlib.closing(inv.lab):
                candidates = shown(inv.golden, Precision.FP16, print)
                with on_command(to, case, candidates, listener) as command:
                    return CommandSearch(request, inv.golden, candidates, command, earlier=earlier).plan()

    return searched


def test_the_smallest_set_that_passes_is_kept_and_written(search, tmp_path):
    judge = Judge("op_1", "op_4")
    plan = search(judge, output=tmp_path / "mixed.onnx")
    assert plan.kept == ("op_1", "op_4")
    assert (plan.asked, plan.mode, plan.minimality, plan.interrupted) == ("check", "auto", "one-minimal", False)
    assert plan.builds == plan.checks >= len(judge.asked) == len(set(judge.asked))
    assert {(node.node, node.without) for node in plan.nodes} == {("op_1", "fails"), ("op_4", "fails")}
    assert (plan.candidates, plan.precision, plan.higher, plan.inputs) == (NODES, "fp16", "fp32", "real")
    assert plan.casts == 6  # into the model and out of it, into and out of each of the two
    assert judge.asked[2] == {"op_5"}  # the first guess: whose rounding no later node dampens
    assert (plan.emulated > 0, plan.error.goal) == (True, "check: judge")
    assert (tmp_path / "mixed.onnx").is_file()


def test_nothing_is_kept_where_the_lower_format_is_enough(search):
    judge = Judge()
    plan = search(judge)
    assert (plan.kept, plan.checks, plan.files, judge.asked) == ((), 1, {}, [frozenset()])


def test_what_fails_in_fp32_too_is_no_matter_of_precision(search):
    judge = Judge("op_1", most=0)
    with pytest.raises(NotPrecisionError) as caught:
        search(judge)
    assert caught.value.slug == "precision-not-the-cause"
    assert judge.asked == [frozenset(), frozenset(f"op_{place}" for place in range(NODES))]


@pytest.mark.parametrize(("mode", "reverse", "kept"), [("bisect", False, 4), ("linear", False, 4), ("linear", True, 3)])
def test_the_first_or_the_last_nodes_are_kept_where_that_is_asked_for(search, mode, reverse, kept):
    plan = search(Judge("op_3"), mode=PrecisionMode(mode), reverse=reverse)
    assert len(plan.kept) == kept
    assert "op_3" in plan.kept
    assert {node.without for node in plan.nodes} == {""}
    assert plan.emulated == 0


@pytest.mark.parametrize("code", [126, 127])
def test_a_command_that_the_shell_cannot_start_ends_the_search(search, code):
    with pytest.raises(UsageError) as caught:
        search(Judge("op_1", code=code))
    assert caught.value.slug == "check-program-missing"


def test_what_the_command_cannot_tell_counts_as_a_failure(search):
    assert search(Judge("op_2", code=None)).kept == ("op_2",)  # None: it took too long


def test_a_candidate_is_shown_once_even_if_it_is_asked_again_later(search):
    first, again = Judge("op_2"), Judge("op_2")
    assert search(first).kept == search(again).kept == ("op_2",)
    assert (len(first.asked) > 2, again.asked) == (True, [])


def test_a_replay_answers_instead_of_the_command(search, tmp_path):
    record = tmp_path / "replay.json"
    plan = search(Judge("op_2"), save_replay=record)
    (tmp_path / "case").rename(tmp_path / "old")
    unasked, told = Judge(), Told()
    assert search(unasked, load_replay=record, listener=told).kept == plan.kept
    assert unasked.asked == []
    known = [line for line in told.lines if "nodes kept: " in line]
    assert known
    assert all(line.startswith("known: ") and line.endswith("(from the replay)") for line in known)


def test_idle_workers_change_no_answer(search, tmp_path):
    alone, together = Judge("op_1", "op_4"), Judge("op_1", "op_4")
    expected = search(alone)
    (tmp_path / "case").rename(tmp_path / "old")
    plan = search(together, jobs=3)
    assert (plan.kept, plan.checks) == (expected.kept, expected.checks)
    assert len(together.asked) == len(set(together.asked))
    assert set(alone.asked) < set(together.asked)


def test_an_interrupted_search_keeps_the_smallest_set_that_passed(search, tmp_path):
    whole = search(Judge("op_1"))
    (tmp_path / "case").rename(tmp_path / "old")
    plan = search(Judge("op_1"), listener=Told(f"check {whole.checks}:"))
    assert (plan.interrupted, plan.minimality) == (True, "budget")
    assert "op_1" in plan.kept
    assert {node.without for node in plan.nodes} == {""}
    assert plan.confirmed


@pytest.mark.parametrize(("last", "confirmed"), [("check 1:", False), ("check 2:", True)])
def test_a_search_that_is_interrupted_before_it_chose_keeps_every_node(search, tmp_path, last, confirmed):
    plan = search(Judge("op_1"), listener=Told(last), output=tmp_path / "mixed.onnx")
    assert (len(plan.nodes), plan.confirmed, plan.interrupted) == (NODES, confirmed, True)
    assert {node.reason for node in plan.nodes} == {"interrupted before anything smaller was seen to be enough"}
    assert np.array_equal(answers(tmp_path / "mixed.onnx"), answers(tmp_path / "m.onnx"))


def answers(path):
    feed = {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)[0]


def test_a_resumed_search_asks_only_what_no_earlier_one_did(search, tmp_path):
    whole = search(Judge("op_1", "op_4"))
    (tmp_path / "case").rename(tmp_path / "old")
    asked = []
    for last in ("check 1:", "check 1:", "check 2:", "nowhere"):
        judge = Judge("op_1", "op_4")
        plan = search(judge, listener=Told(last))
        assert (plan.checks, plan.builds) == (len(judge.asked), len(judge.asked))
        asked += judge.asked
    assert plan.kept == whole.kept
    assert plan.known == len(asked) - len(judge.asked) + whole.known
    assert len(asked) == len(set(asked)) == whole.checks
    again = search(Judge())
    assert (again.kept, again.checks, again.known) == (whole.kept, 0, whole.checks + whole.known)


def test_an_interruption_that_comes_earlier_than_the_last_one_leaves_what_that_one_found(search, tmp_path):
    whole = search(Judge("op_1"))
    (tmp_path / "case").rename(tmp_path / "old")
    better = search(Judge("op_1"), listener=Told(f"check {whole.checks}:"))
    plan = search(Judge("op_1"), listener=Told("known: 0"), earlier=[node.node for node in better.nodes])
    assert (plan.kept, plan.confirmed) == (better.kept, True)
