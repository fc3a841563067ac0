"""Values under their keys: expected values are written out by hand."""

from tensortriage.values.grouping import grouped


def test_values_and_keys_stay_in_order():
    found = grouped([("b", 1), ("a", 2), ("b", 3), ("b", 1)])
    assert list(found.items()) == [("b", [1, 3, 1]), ("a", [2])]


def test_nothing_makes_no_groups():
    assert grouped(()) == {}
