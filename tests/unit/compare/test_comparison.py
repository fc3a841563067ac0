import numpy as np
import pytest

from tensortriage.compare.comparison import Comparison, compare
from tensortriage.compare.tolerance import PolygraphyTolerance
from tensortriage.errors import DataError
from tensortriage.values.store import MappedStore, MemoryStore, ShardWriter

REFERENCE = {name: np.full(3, index, np.float32) for index, name in enumerate(["first", "second", "third"], 1)}


def test_rows_are_in_the_order_of_the_reference_with_their_nodes():
    target = {"third": REFERENCE["third"], "second": REFERENCE["second"] + 1, "first": REFERENCE["first"]}
    comparison = compare(
        MemoryStore(REFERENCE),
        MemoryStore(target),
        PolygraphyTolerance(),
        names=("onnxruntime", "openvino"),
        producers={"second": ("node", "Add")},
    )
    assert [row.value for row in comparison.rows] == ["first", "second", "third"]
    assert [row.judgement.within for row in comparison.rows] == [True, False, True]
    assert [row.value for row in comparison.outside] == ["second"]
    assert (comparison.rows[1].node, comparison.rows[1].op_type) == ("node", "Add")
    assert (comparison.reference, comparison.target) == ("onnxruntime", "openvino")
    assert not comparison.within


def test_a_store_on_disk_can_be_compared(tmp_path):
    with ShardWriter(tmp_path / "s") as writer:
        for name, array in REFERENCE.items():
            writer.write(name, array)
    assert compare(MappedStore(tmp_path / "s"), MemoryStore(REFERENCE), PolygraphyTolerance()).within


@pytest.mark.parametrize("extra", ["reference", "target"])
def test_a_tensor_on_one_side_only_is_never_a_pass(extra):
    more = REFERENCE | {"fourth": np.zeros(1)}
    sides = (more, REFERENCE) if extra == "reference" else (REFERENCE, more)
    comparison = compare(*map(MemoryStore, sides), PolygraphyTolerance())
    assert comparison.unmatched == ("fourth",)
    assert comparison.outside == ()
    assert not comparison.within


def test_a_tensor_of_another_shape_is_left_out_by_name():
    target = REFERENCE | {"second": np.zeros((3, 1), np.float32)}
    comparison = compare(MemoryStore(REFERENCE), MemoryStore(target), PolygraphyTolerance())
    assert comparison.unmatched == ("second",)
    assert len(comparison.rows) == 2


def test_comparing_nothing_is_an_error():
    with pytest.raises(DataError) as caught:
        compare(MemoryStore({"x": np.zeros(2)}), MemoryStore({"x": np.zeros(3)}), PolygraphyTolerance())
    assert caught.value.slug == "nothing-compared"
    with pytest.raises(DataError):
        Comparison("reference", "target", ())
