import numpy as np

from tensortriage.diagnose.consistency.relations import ClaimKind, masked_relation, row_relations
from tensortriage.diagnose.consistency.views import views
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.batch_rows import BatchAxes, Rows


def rows(count, fixed=None):
    made = [{"x": np.full((1, 2), index, np.float32)} for index in range(count)]
    return Rows(BatchAxes({"x": 0}, fixed), made, {}, 0, Origin.REAL)


def feed(**tensors):
    return Feed("f", tensors, Origin.REAL)


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


def test_what_a_mask_hides_is_changed_and_nothing_else():
    mask = np.array([[1, 1, 0], [1, 0, 0]])
    ids = np.array([[5, 6, 7], [8, 9, 1]])
    found = masked_relation(feed(attention_mask=mask, input_ids=ids))
    changed = found.right.tensors["input_ids"] != found.left.tensors["input_ids"]
    assert not changed[mask == 1].any()
    assert changed[mask == 0].any()
    assert np.array_equal(found.right.tensors["attention_mask"], mask)


def test_where_nothing_is_hidden_the_last_quarter_is():
    ids = np.arange(8).reshape(1, 8)
    found = masked_relation(feed(attention_mask=np.ones((1, 8), np.int64), input_ids=ids))
    assert found.left.tensors["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 0, 0]]


def test_lengths_hide_what_is_behind_them():
    found = masked_relation(feed(x=np.arange(6.0).reshape(2, 3, 1), lengths=np.array([2, 3], np.int32)))
    changed = (found.right.tensors["x"] != found.left.tensors["x"])[..., 0]
    assert changed.tolist() == [[False, False, True], [False, False, False]]


def test_without_mask_and_length_nothing_is_claimed():
    assert masked_relation(feed(x=np.zeros((2, 3)))) is None
    assert masked_relation(feed(mask=np.full((2, 3), 0.5), x=np.zeros((2, 3)))) is None


def test_rows_are_found_where_they_are_merged_with_heads():
    """[batch, heads, n] written as [batch * heads, n]: row 1 of two rows by three heads are the entries 3 to 5."""
    relation = next(r for r in row_relations(rows(2)) if r.kind is ClaimKind.TWICE)
    value = np.arange(12.0).reshape(6, 2)
    (first, *_) = views(relation, value, value)
    assert first[0].left(value).tolist() == value[:3].tolist()
    assert first[0].right(value).tolist() == value[3:].tolist()
