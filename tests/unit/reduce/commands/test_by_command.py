"""Asking a command or a person about pieces of a model, from the premise to the written result."""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from models import chain, of_nodes, parse, proto
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.reduce.commands.by_command import StagedAsking, StagedRequest
from tensortriage.reduce.pieces.node_bodies import Opening
from tensortriage.reduce.pieces.piece_search import Search
from tensortriage.reduce.pieces.polygraphy_pieces import PolygraphyPieces
from tensortriage.reduce.reduction_result import Effort
from tensortriage.reduce.request import Ends, ShapeSource
from tensortriage.runs.case import Case
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.commands.command_oracle import ShownTo
from tensortriage.runs.commands.phases import LAST, Phases
from tensortriage.search.problem import CandidateOutcome
from tensortriage.search.statistics.repeats import Rate, Repeats

SAME, OTHER, PASS, UNRESOLVED = CandidateOutcome
ALWAYS = Rate(1, 1)
TEXT = """g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
    [start] a = Abs(x)
    [fault] y = Exp(a)
    [end] z = Neg(y)
}"""


class Person:
    """Answers what is written down for a piece of so many nodes, and remembers what it was shown."""

    def __init__(self, **answers):
        self.answers, self.shown = answers, []

    def judge(self, model, nodes):
        self.shown.append([node.name for node in Model.load(model).graph.nodes])
        return self.answers.get(f"of_{nodes}", True)


def failing_with(text, *words):
    """Return a check that fails when the piece holds some text."""
    code = f"import sys; sys.exit({text!r} in open('piece.onnx', 'rb').read())"
    return CheckSpec(words=(sys.executable, "-S", "-E", "-c", code, *map(str, words)))


FAULT = failing_with(b"Exp")


@pytest.fixture
def asking(tmp_path, monkeypatch):
    """Return what makes a way of asking about a model, in one case."""
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as stack:
        case = stack.enter_context(Case(tmp_path / "case"))

        def make(judge, model=TEXT, **given):
            loaded = parse(model) if isinstance(model, str) else model
            feed = Feed("feed", {"x": np.ones((2, 3), np.float32)}, Origin.REAL)
            check = judge if isinstance(judge, CheckSpec) else CheckSpec(words=("a person",))
            to = {key: given.pop(key) for key in ("jobs", "phases", "save_replay", "load_replay") if key in given}
            settings = {
                "model": loaded,
                "samples": lambda: iter([feed]),
                "to": ShownTo(
                    check=check, artifact=Path("piece.onnx"), keep_artifact=False, tell=lambda _: None,
                    person=None if judge is check else judge.judge, **to,
                ),
                "ends": Ends.BOTH,
                "shape_source": ShapeSource.INFERENCE,
                "repeats": Repeats(premise=1),
                "shrink_seconds": 0.0,
            }  # fmt: skip
            return stack.enter_context(contextlib.closing(StagedAsking(StagedRequest(**settings | given), case)))

        yield make


def searched(asked, executor=None):
    search = Search(
        pieces=asked.pieces, oracle=asked.oracle, identity=asked.identity, cache=asked.cache, repeats=asked.repeats
    )
    return search.run(asked.suspicion, executor)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_command_finds_the_node_alone_or_several_at_once(asking, jobs):
    asked = asking(FAULT, jobs=jobs)
    with asked.executor() as executor:
        assert (executor is None) == (jobs == 1)
        assert searched(asked, executor).kept == ("fault",)
    assert asked.word == "check"
    assert (asked.suspicion(), asked.failure()) == ({}, None)


def test_a_person_is_shown_the_piece_and_may_skip_it_or_take_an_answer_back(asking, tmp_path):
    person = Person(of_1=None, of_2=False)
    asked = asking(person)
    names = asked.pieces.items
    assert [asked.oracle(names[:count], 0).outcome for count in (3, 2, 1)] == [SAME, PASS, UNRESOLVED]
    assert person.shown == [["start", "fault", "end"], ["start", "fault"], ["start"]]
    assert not (tmp_path / "piece.onnx").exists()
    asked.cache.put("key", "question", asked.oracle(names, 0), seconds=0.0)
    asked.undo()
    assert asked.cache.get("key", object) is None
    assert asked.word == "person"


def test_in_a_mode_of_polygraphys_the_whole_is_taken_to_fail(asking):
    person, phases = Person(of_3=False), Phases(apart=True)
    asked = asking(person, phases=phases)
    assert isinstance(asked.pieces, PolygraphyPieces)
    assert asked.oracle(asked.pieces.items, 0).outcome is SAME
    assert person.shown == []
    phases.begin(LAST)
    assert asked.oracle(asked.pieces.items, 0).outcome is PASS


def test_answers_do_not_belong_to_another_model_or_to_other_ends(asking):
    same, ends, model, words = (
        asking(FAULT), asking(FAULT, ends=Ends.KEEP_INPUTS), asking(FAULT, chain(2)), asking(failing_with(b"Neg")),
    )  # fmt: skip
    assert asking(FAULT).identity() == same.identity()
    assert len({each.identity() for each in (same, ends, model, words)}) == 4


def test_a_file_that_the_check_writes_does_not_make_it_another_check(asking, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("")
    code = "import sys; open(sys.argv[1], 'a').write('.'); sys.exit(1)"
    spec = CheckSpec(words=(sys.executable, "-S", "-E", "-c", code, str(log)))
    asked = asking(spec, repeats=Repeats(premise=2))
    before = asked.identity()
    result = searched(asked)
    count = len(log.read_text())
    assert asked.identity() != before
    again = asking(spec, repeats=Repeats(premise=2))
    assert again.identity() == asked.identity()
    assert searched(again).cache_hits == len(result.history)
    assert len(log.read_text()) == count


def test_verdicts_of_a_replay_are_not_asked_for_again(asking, tmp_path):
    first = asking(Person(of_2=False), save_replay=tmp_path / "r.json")
    for count in (3, 2):
        first.oracle(first.pieces.items[:count], 0)
    person = Person()
    again = asking(person, load_replay=tmp_path / "r.json")
    assert [again.oracle(again.pieces.items[:count], 0).outcome for count in (3, 2)] == [SAME, PASS]
    assert person.shown == []


def test_what_is_inside_must_fail_as_the_whole_did_and_leaves_the_replay_alone(asking, tmp_path):
    asked = asking(failing_with(b"Relu"), chain(2), save_replay=tmp_path / "r.json")
    asked.oracle(asked.pieces.items, 0)
    asked.oracle.expected = "exit code 3"
    with contextlib.closing(asked.inside(Opening("op_0", "If", "then_branch", chain(1)), asked.repeats)) as inner:
        assert inner.pieces.items == ("op_0",)
        assert inner.oracle(inner.pieces.items, 0).outcome is OTHER
    replay = json.loads((tmp_path / "r.json").read_text())
    assert [key for key in replay if key.startswith("_N")] == ["_N0"]


def test_a_condition_is_told_where_it_is_a_constant(asking):
    text = "g (bool c, float[2] x) => (float[2] y) <bool yes = {1}, bool no = {0}> { [n] y = Neg(x) }"
    asked = asking(Person(), text)
    assert (asked.taken("yes"), asked.taken("no"), asked.taken("c")) == (True, False, None)


TWO = """g (float[2, 3] x) => (float[1, 3] y, float[1, 3] z) {
    [fault] y, m = Split<axis = 0, num_outputs = 2>(x)
    [end] z = Neg(m)
}"""


@pytest.mark.parametrize(
    ("nodes", "needs", "outputs", "done"),
    [
        (("fault",), b"Split", ["y"], True),
        (("fault", "end"), b"Split", ["z"], True),  # y alone would lose a node
        (("fault",), b"nothing", ["y", "m"], False),
    ],
)
def test_a_result_is_written_with_as_few_outputs_as_fail(asking, tmp_path, nodes, needs, outputs, done):
    asked = asking(failing_with(needs), TWO)
    asked.oracle.expected = "exit code 1"
    finish = asked.finish(nodes, tmp_path / "r.onnx", ALWAYS, Effort.FULL)
    assert [spec.name for spec in Model.load(tmp_path / "r.onnx").outputs] == outputs
    assert [(each.what, each.done) for each in finish.shrunk] == [("outputs", done)]
    assert finish.verified is done


def test_a_person_and_who_has_no_patience_get_the_result_as_it_is(asking, tmp_path):
    for judge, effort in ((Person(), Effort.FULL), (FAULT, Effort.WRITE)):
        asked = asking(judge)
        finish = asked.finish(("fault",), tmp_path / "r.onnx", ALWAYS, effort)
        assert (finish.verified, finish.shrunk) == (None, ())
        assert [node.name for node in Model.load(tmp_path / "r.onnx").graph.nodes] == ["fault"]


def test_sizes_are_made_smaller_while_the_check_fails(asking, tmp_path):
    model = of_nodes(
        proto("g (float[1] x) => (float[1] y) { [fault] y = Exp(x) }").graph.node,
        inputs={"x": (64, 48)},
        outputs={"y": (64, 48)},
    )
    asked = asking(FAULT, model, shrink_seconds=60.0)
    asked.oracle.expected = "exit code 1"
    finish = asked.finish(("fault",), tmp_path / "r.onnx", ALWAYS, Effort.FULL)
    assert [each.done for each in finish.shrunk if each.what == "sizes"] == [True]
    assert np.prod(Model.load(tmp_path / "r.onnx").inputs[0].shape) < 64 * 48
    assert finish.verified is True


def test_sizes_are_kept_where_the_piece_does_not_run(asking):
    node = proto("g (float[1] x) => (float[1] y) { [fault] y = Nothing(x) }").graph.node
    asked = asking(FAULT, of_nodes(node, inputs={"x": (4,)}, outputs={"y": (4,)}), shrink_seconds=60.0)
    assert [(each.what, each.done) for each in asked.finish(("fault",), None, ALWAYS, Effort.FULL).shrunk] == [
        ("sizes", False)
    ]
