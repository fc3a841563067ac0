import numpy as np

from tensortriage.inputs.feed import Origin
from tensortriage.inputs.synthetic.batch_rows import BatchAxes, Rows
from tensortriage_steps.consistency.relations import ClaimKind, row_relations
from tensortriage_steps.consistency.views import views


def rows(count, fixed=None):
    made = [{"x": np.full((1, 2), index, np.float32)} for index in range(count)]
    return Rows(BatchAxes({"x": 0}, fixed), made, {}, 0, Origin.REAL)


def test_every_pair_holds_the_same_row_in_both_runs():
    for relation in row_relations(rows(5)):
        left, right = relation.left.tensors["x"], relation.right.tensors["x"]
        assert (len(left), len(right)) == (relation.rows_left, relation.rows_right)
        assert relation.pairs
        assert all(np.array_equal(left[i], right[j]) for i, j in relation.pairs)


def test_a_model_that_fixes_its_batch_is_asked_about_places_only():
    kinds = {relation.kind for relation in row_relations(rows(3, fixed=3))}
    assert kinds == {ClaimKind.TWICE, ClaimKind.NEIGHBOURS, ClaimKind.MOVED}


def test_no_two_rows_that_are_swapped_are_where_the_permutation_expects_them():
    """A swap of two places commutes with no rotation of three or more."""
    moved = next(r for r in row_relations(rows(8)) if r.kind is ClaimKind.MOVED)
    for place in range(1, 8):
        order = list(range(8))
        order[place - 1], order[place] = order[place], order[place - 1]
        left, right = moved.left.tensors["x"][order], moved.right.tensors["x"][order]
        assert any(not np.array_equal(left[i], right[j]) for i, j in moved.pairs)


def test_rows_are_found_where_they_are_merged_with_heads():
    """[batch, heads, n] written as [batch * heads, n]: row 1 of two rows by three heads are the entries 3 to 5."""
    relation = next(r for r in row_relations(rows(2)) if r.kind is ClaimKind.TWICE)
    value = np.arange(12.0).reshape(6, 2)
    (first, *_) = views(relation, value, value)
    assert first[0].left(value).tolist() == value[:3].tolist()
    assert first[0].right(value).tolist() == value[3:].tolist()
