"""Which ops decide, and which outputs show it."""

import pytest

from models import parse
from tensortriage.model.inspect.decisions import DecisionKind, decided_values, decisions_behind, shown_as

MODEL = parse("""g (float[2,10] x) => (float[2,3] values, int32[6] shown, float[2,4] moved, float[2,10] other)
 <int64[1] three={3}, int64[1] six={6}>
 { values, ranks = TopK <largest=0, sorted=0> (x, three)
   flat = Reshape(ranks, six)
   shown = Cast <to=6> (flat)
   other = Relu(x)
   best = ArgMax <axis=1, keepdims=1> (other)
   row = Gather <axis=0> (embedding, best)
   one = ReduceMean <keepdims=0> (row)
   moved = Mul(one, four)
   unused_values, unused = TopK(x, three) }""".replace("{6}>", "{6}, float[10,1] embedding={0,1,2,3,4,5,6,7,8,9},"
                                                      " float[2,4] four={1,1,1,1,1,1,1,1}>"))  # fmt: skip


def test_what_decides() -> None:
    top, best = decisions_behind(MODEL.graph, ["values", "shown", "moved"])
    assert (top.kind, top.value, top.scores, top.axis) == (DecisionKind.TOP_K, "ranks", "x", -1)
    assert (top.largest, top.ordered) == (False, False)
    assert (best.kind, best.value, best.scores, best.axis, best.largest) == (
        DecisionKind.EXTREME, "best", "other", 1, True)  # fmt: skip


def test_indices_that_nobody_uses_decide_nothing() -> None:
    assert decisions_behind(MODEL.graph, ["unused_values"]) == ()
    assert len(decisions_behind(MODEL.graph, ["unused"])) == 1
    assert decisions_behind(MODEL.graph, ["other"]) == ()


def test_which_output_shows_the_indices() -> None:
    top, best = decisions_behind(MODEL.graph, ["shown", "moved"])
    assert shown_as(MODEL.graph, top, ["values", "other", "shown"]) == "shown"
    assert shown_as(MODEL.graph, best, ["moved"]) == ""


def test_what_depends_on_a_decision() -> None:
    top, best = decisions_behind(MODEL.graph, ["shown", "moved"])
    assert decided_values(MODEL.graph, top) == {"values", "ranks", "flat", "shown"}
    assert {"best", "row", "moved"} <= decided_values(MODEL.graph, best)


@pytest.mark.parametrize(("corners", "attribute"), [(True, ""), (False, "<center_point_box=1>")])
def test_a_suppression_of_boxes(corners: bool, attribute: str) -> None:
    model = parse(f"""g (float[1,5,4] boxes, float[1,2,5] scores, int64[1] most) => (int64[n,3] picked)
     {{ picked = NonMaxSuppression {attribute} (boxes, scores, most) }}""")
    (found,) = decisions_behind(model.graph, ["picked"])
    assert found.operands == ("scores", "boxes")
    assert (found.corners, found.limits) == (corners, ("most", "", ""))
