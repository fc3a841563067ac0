"""One branch in place of its If: same names, same numbers."""

import numpy as np
import pytest

import models
import running
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.model import Model
from tensortriage.model.transforms.inline_branch import ELSE, THEN, holder_of, take_branch, take_branches


@pytest.mark.parametrize(
    ("branch", "names", "weights"),
    [(THEN, ["before", "scaled", "after"], ["w"]), (ELSE, ["rooted", "after"], [])],
)
def test_a_branch_computes_what_the_if_does(branch, names, weights):
    model = models.with_if()
    taken = take_branch(model, "choice", branch)
    assert [node.name for node in taken.graph.nodes] == names
    assert [spec.name for spec in taken.inputs] == ["x"]
    assert list(taken.graph.constants) == weights
    x = np.array([1.0, 4.0], np.float32)
    expected = running.run(model, {"x": x, "c": np.array(branch == THEN)})
    np.testing.assert_array_equal(running.run(taken, {"x": x})["y"], expected["y"])
    assert "choice" in model.graph


PASSING_ON = """
    g (bool c, float[2] x) => (float[2] y, float[2] z) {
        [same] y, z = If (c) <
            then_branch = th () => (float[2] x2, float[2] x3) { [copied] x2 = Identity(x) [again] x3 = Neg(x2) },
            else_branch = el () => (float[2] e, float[2] e) { [only] e = Neg(x) }
        >
    }"""


@pytest.mark.parametrize("branch", [THEN, ELSE])
def test_results_of_any_kind_get_the_names_of_the_if(branch):
    """Worked out by hand: ONNX Runtime 1.31 returns garbage for a branch that gives one value twice."""
    taken = take_branch(models.parse(PASSING_ON), "same", branch)
    x = np.array([1.0, 4.0], np.float32)
    found = running.run(taken, {"x": x})
    np.testing.assert_array_equal(found["y"], x if branch == THEN else -x)
    np.testing.assert_array_equal(found["z"], -x)


TWO = """
    g (bool c, float[2] x) => (float[2] y) {
        [first] a = If (c) <then_branch = t () => (float[2] v) { [n] v = Neg(x) },
                            else_branch = e () => (float[2] v) { [n] v = Abs(x) }>
        [second] y = If (c) <then_branch = t () => (float[2] v) { [n] v = Neg(a) },
                             else_branch = e () => (float[2] v) { [n] v = Abs(a) }>
    }"""


def test_names_that_two_branches_share_stay_apart():
    model = models.parse(TWO)
    taken = take_branch(take_branch(model, "first", THEN), "second", ELSE)
    assert [node.op_type for node in taken.graph.nodes] == ["Neg", "Abs"]
    assert len({node.name for node in taken.graph.nodes}) == 2
    x = np.array([1.0, 4.0], np.float32)
    np.testing.assert_array_equal(running.run(taken, {"x": x})["y"], x)


def test_several_at_once():
    model = models.parse(TWO)
    taken = take_branches(model, {"first": THEN, "second": ELSE})
    assert [node.op_type for node in taken.graph.nodes] == ["Neg", "Abs"]
    assert [spec.name for spec in taken.inputs] == ["x"]


def test_nodes_note_the_branch_that_they_are_of(tmp_path):
    inside = (
        "then_branch = t () => (float[2] v) { [n] v = Neg(x) }, else_branch = e () => (float[2] v) { [m] v = Abs(x) }"
    )
    model = models.parse(f"""
        g (bool c, bool d, float[2] x) => (float[2] y) {{
            [outer] y = If (c) <
                then_branch = up () => (float[2] u) {{ [inner] u = If (d) <{inside}> }},
                else_branch = down () => (float[2] w) {{ [copied] w = Identity(x) }}>
        }}""")
    assert [holder_of(model, name) for name in ("n", "copied", "outer", "unknown")] == ["outer", "outer", "", ""]
    taken = take_branch(take_branch(model, "outer", THEN), "inner", ELSE)
    saved = Model.load(taken.save(tmp_path / "taken.onnx"))
    assert saved.graph.origin("m").body == "outer/then_branch/inner/else_branch"


def test_an_unknown_node():
    with pytest.raises(UsageError):
        take_branch(models.with_if(), "nothing", THEN)


def test_a_constant_whose_name_is_taken():
    model = models.parse("""
        g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            [choice] r = If (c) <
                then_branch = th () => (float[2] t) <float[2] w = {3, 4}> { [scaled] t = Mul(x, w) },
                else_branch = el () => (float[2] e) { [rooted] e = Sqrt(x) }>
            [after] y = Mul(r, w)
        }""")
    with pytest.raises(ModelError) as caught:
        take_branch(model, "choice", THEN)
    assert caught.value.slug == "branch-not-taken"
