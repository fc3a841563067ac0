"""Orders in which the axes of a tensor may lie in a file."""

import pytest

from tensortriage_engines.axis_orders import orders


@pytest.mark.parametrize(
    ("declared", "held", "wanted"),
    [
        ((1, 3, 8, 8), (1, 8, 8, 3), [(0, 2, 3, 1)]),
        ((1, 3, 8, 8), (1, 3, 8, 8), [(0, 1, 2, 3)]),
        ((1, 4, 4, 4), (1, 4, 4, 4), [(0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2)]),
        ((1, 8, 8, 3), (1, 3, 8, 8), [(0, 3, 1, 2)]),
        ((1, 10, 40), (1, 40, 10), [(0, 2, 1)]),
        ((1, 1, 8, 8), (1, 8, 8, 1), [(0, 2, 3, 1)]),  # an axis of one entry lies anywhere
        ((1, 10, 40), (10, 40), [(0, 1, 2)]),
        ((1, 10, 40), (1, 1, 40, 10), [(0, 2, 1)]),
        ((), (1,), [()]),
        ((2, 3, 5), (5, 3, 2), [(2, 1, 0)]),
        ((1, 3, 8, 8), (1, 3, 64), []),  # never a reshape
        ((1, 3, 8, 8), (-1, 8, 8, 3), [(0, 2, 3, 1)]),
        (None, (1, 2), [None]),
    ],
)
def test_orders_of_axes_that_fit(declared, held, wanted):
    assert list(orders(declared, held)) == wanted
