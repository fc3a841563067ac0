"""What faults of decoders make of a tensor: rows and slots by hand."""

import numpy as np
import pytest

from tensortriage.errors import UsageError
from tensortriage_testing import fault_operators as kinds
from tensortriage_testing.fault_numbers import Site, apply

TABLE = np.arange(6, dtype=np.float32).reshape(3, 2)


def site(op_type, right, *operands, axis=0):
    return Site(right, None, [np.asarray(operand) for operand in operands], op_type, {"axis": axis}, None, 0)


@pytest.mark.parametrize(
    ("kind", "told", "taken"),
    [
        (kinds.in_order, [2, 0, 1], [0, 1, 2]),
        (kinds.in_order, [1, 1], [0, 1]),
        (kinds.row_before, [2, 0, 1], [1, 0, 0]),
    ],
)
def test_rows_that_a_gather_was_not_told_to_take(kind, told, taken):
    found = apply(kind, site("Gather", TABLE[told], TABLE, told))
    np.testing.assert_array_equal(found, TABLE[taken])


@pytest.mark.parametrize(("slot", "written"), [(0, 1), (2, 0)])
def test_the_slot_behind_the_one_that_is_told_and_behind_the_last_the_first(slot, written):
    rows, slots = np.full((1, 2), 9, np.float32), np.full((1, 2), slot)
    right, wrong = TABLE.copy(), TABLE.copy()
    right[slot], wrong[written] = 9, 9
    found = apply(kinds.slot_after, site("ScatterElements", right, TABLE, slots, rows))
    np.testing.assert_array_equal(found, wrong)


@pytest.mark.parametrize("kind", [kinds.in_order, kinds.row_before, kinds.slot_after])
def test_another_operator_is_refused(kind):
    with pytest.raises(UsageError) as caught:
        apply(kind, site("Neg", -TABLE, TABLE))
    assert caught.value.slug == "fault-unsupported"
