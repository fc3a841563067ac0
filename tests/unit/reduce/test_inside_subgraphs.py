"""Reductions that go on inside If, Loop, Scan and functions, with a fault planted in a node in there."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import models
from reducing import Deaf, nodes_of
from tensortriage.runs.commands.check import CheckSpec, shell_words
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.reduce import ReduceRequest, reduce

ENGINE = """
from pathlib import Path
import onnx
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)

class Engine:
    def compile(self, model, options):
        message = onnx.load(model)
        for graph in [*graphs(message.graph), *message.functions]:
            for node in [node for node in graph.node if node.name == options["node"]]:
                right, made = node.output[0] + "_right", node.output[0]
                node.output[0] = right
                place = list(graph.node).index(node) + 1
                factor = onnx.helper.make_tensor("f", 1, (), [1.5])
                extra = [onnx.helper.make_node("Constant", [], [made + "_factor"], value=factor),
                         onnx.helper.make_node("Mul", [right, made + "_factor"], [made])]
                rest = list(graph.node)
                del graph.node[:]
                graph.node.extend(rest[:place] + extra + rest[place:])
        wrong = Path(str(model) + ".wrong.onnx")
        onnx.save(message, wrong)
        return OnnxRuntimeEngine().compile(wrong, {"optimization": "none"})
"""
"""ONNX Runtime with a node that is wrong wherever it is."""

BRANCHES = """
    g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        [before] a = Neg(x)
        [choice] r = If (c) <
            then_branch = then_graph () => (float[2] t) {
                [scaled] s = Mul(a, w) [bent] b = Tanh(s) [moved] t = Add(b, x) },
            else_branch = else_graph () => (float[2] e) { [rooted] e = Sqrt(x) }
        >
        [after] y = Sin(r)
    }"""

LOOP = """
    g (float[2] x) => (float[2] y) <int64 turns = {3}, bool start = {1}> {
        [outer] step = Sin(x)
        [loop] y = Loop (turns, start, x) <
            body = body (int64 i, bool more, float[2] state) => (bool again, float[2] next) {
                [again] again = Identity(more)
                [number] n = Cast <to = 1> (i)
                [wave] w = Cos(state)
                [late] l = Mul(w, n)
                [sum] next = Add(l, step)
            }
        >
    }"""
"""In the first turn ``late`` makes zeros, so that it can be wrong only from the second on."""

SCAN = """
    g (float[2] s, float[2, 3] x) => (float[2] f, float[3, 2] y) {
        [scan] f, y = Scan <num_scan_inputs = 1, scan_input_axes = [1],
            body = b (float[2] before, float[2] column) => (float[2] after, float[2] out) {
                [add] after = Add(before, column) [turned] t = Sin(after) [mul] out = Mul(t, column) }> (s, x)
    }"""

NESTED = """
    g (float[2] x) => (float[2] y) <int64 turns = {2}, bool start = {1}> {
        [loop] y = Loop (turns, start, x) <
            body = body (int64 i, bool more, float[2] state) => (bool again, float[2] next) {
                [again] again = Identity(more)
                [choice] next = If (more) <
                    then_branch = th () => (float[2] t) { [wave] w = Cos(state) [shift] t = Add(w, x) },
                    else_branch = el () => (float[2] e) { [same] e = Identity(state) }
                >
            }
        >
    }"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner.py").write_text(ENGINE)
    return tmp_path


def write(text, **feed):
    models.parse(text).save("m.onnx")
    np.savez("m.npz", **feed)


def by_engine(node, **given):
    request = ReduceRequest(
        model=Path("m.onnx"),
        output=Path("r.onnx"),
        target=f"script:inner.py,node={node}",
        feeding=FeedRequest(paths=("m.npz",)),
        shrink_seconds=0.0,
        **given,
    )
    return reduce(request, listener=Deaf())


X = np.array([0.5, 0.25], np.float32)


def names_in(result):
    return [node.name for node in result.kept]


@pytest.mark.parametrize(
    ("condition", "node", "branch"), [(True, "bent", "then_branch"), (False, "rooted", "else_branch")]
)
def test_the_branch_that_is_taken(folder, condition, node, branch):
    write(BRANCHES, c=np.array(condition), x=X)
    result = by_engine(node)
    assert names_in(result) == nodes_of(folder / "r.onnx") == [node]
    (opened,) = result.opened
    assert (opened.node, opened.what, opened.done) == ("choice", branch, True)
    assert (result.minimality, result.verified, result.nodes_before) == ("one-minimal", True, 3)
    assert result.failure.output == "y"


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("text", "feed", "node", "holder"),
    [(LOOP, {"x": X}, "late", "loop"), (SCAN, {"s": X, "x": np.stack([X, 2 * X, 3 * X], 1)}, "turned", "scan")],
)
def test_the_body_of_a_loop_with_what_a_turn_is_fed(folder, text, feed, node, holder):
    write(text, **feed)
    result = by_engine(node)
    assert names_in(result) == nodes_of(folder / "r.onnx") == [node]
    assert [(opened.node, opened.what, opened.done) for opened in result.opened] == [(holder, "body", True)]
    assert result.verified


@pytest.mark.lengthy
def test_an_if_in_a_loop(folder):
    write(NESTED, x=X)
    result = by_engine("wave")
    assert names_in(result) == ["wave"]
    assert [(opened.node, opened.done) for opened in result.opened] == [("loop", True), ("choice", True)]


@pytest.mark.lengthy
def test_a_fault_of_the_node_itself_stays_there(folder):
    write(LOOP, x=X)
    result = by_engine("loop")
    assert names_in(result) == ["loop"]
    (opened,) = result.opened
    assert not opened.done
    assert "the fault needs the node itself" in opened.detail


LOOKING = """
import sys
data = open("polygraphy_debug.onnx", "rb").read()
sys.exit(all(b"\\x1a" + bytes([len(name)]) + name.encode() in data for name in sys.argv[1:]))
"""


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("text", "needed", "expected", "opened"),
    [
        (BRANCHES, ["bent"], ["bent"], [("choice", True)]),
        (BRANCHES, ["before", "scaled"], ["before", "scaled"], [("choice", True)]),
        (LOOP, ["late"], ["late"], [("loop", True)]),
        (LOOP, ["outer", "late"], ["outer", "loop"], [("loop", False)]),
    ],
)
def test_a_command_looks_inside(folder, text, needed, expected, opened):
    write(text, c=np.array(True), x=X)
    (folder / "looking.py").write_text(LOOKING)
    check = CheckSpec(words=shell_words(["python3", "-S", "-E", "looking.py", *needed]))
    result = reduce(ReduceRequest(model=Path("m.onnx"), output=Path("r.onnx"), check=check), listener=Deaf())
    assert names_in(result) == expected
    assert [(found.node, found.done) for found in result.opened] == opened
    onnx.checker.check_model("r.onnx", full_check=True)


@pytest.mark.lengthy
def test_a_steady_fault_is_asked_about_once_at_each_level(folder):
    """The whole failed three times in a row: each level on the way in is the same fault, and not measured again."""
    write(NESTED, x=X)
    (folder / "looking.py").write_text(LOOKING)
    check = CheckSpec(words=shell_words(["python3", "-S", "-E", "looking.py", "wave"]))
    result = reduce(ReduceRequest(model=Path("m.onnx"), output=Path("r.onnx"), check=check), listener=Deaf())
    assert names_in(result) == ["wave"]
    # the model 3 times, one node that does not hold it (the check can pass), the Loop's body, in it the If alone, what
    # is in its place, and there the node alone: a premise of three at each level would be seven more or so
    assert result.checks <= 3 + 2 * 3
    assert (result.failed_runs, result.runs) == (5, 5)


COLLECTING = """
    g (float[2] x) => (float[n, 2] y) <int64 turns = {2}, bool start = {1}> {
        [empty] none = SequenceEmpty()
        [loop] all = Loop (turns, start, none) <
            body = body (int64 i, bool more, seq(float[2]) sofar) => (bool again, seq(float[2]) next) {
                [again] again = Identity(more)
                [wave] w = Cos(x)
                [insert] next = SequenceInsert(sofar, w)
            }
        >
        [stack] y = ConcatFromSequence <axis = 0, new_axis = 1> (all)
    }"""


def test_a_loop_that_hands_on_a_sequence_is_kept_and_the_reason_said(folder):
    write(COLLECTING, x=X)
    (folder / "looking.py").write_text(LOOKING)
    check = CheckSpec(words=shell_words(["python3", "-S", "-E", "looking.py", "wave"]))
    result = reduce(ReduceRequest(model=Path("m.onnx"), output=Path("r.onnx"), check=check), listener=Deaf())
    assert names_in(result) == ["empty", "loop", "stack"]
    (opened,) = result.opened
    assert not opened.done
    assert "sequences" in opened.detail


@pytest.mark.lengthy
@pytest.mark.parametrize(("text", "body"), [(LOOP, "body"), (SCAN, "body"), (BRANCHES, "then_branch")])
def test_pieces_of_bodies_that_declare_no_shapes_are_valid(folder, text, body):
    """Exporters leave shapes of states and results of bodies to be inferred; onnx.checker wants them of a model."""
    model = models.proto(text)
    inner = next(a.g for node in model.graph.node for a in node.attribute if a.name == body)
    for value in (*inner.input, *inner.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.ClearField("shape")
    onnx.save(model, "m.onnx")
    needed = [inner.node[-2].name]
    (folder / "looking.py").write_text(LOOKING)
    check = CheckSpec(words=shell_words(["python3", "-S", "-E", "looking.py", *needed]))
    result = reduce(ReduceRequest(model=Path("m.onnx"), output=Path("r.onnx"), check=check), listener=Deaf())
    assert names_in(result) == needed
    onnx.checker.check_model("r.onnx", full_check=True)
