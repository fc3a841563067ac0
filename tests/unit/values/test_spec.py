import pytest

from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


@pytest.mark.parametrize(
    ("declared", "inferred", "expected"),
    [
        (("N", 3), (2, "M"), (2, 3)),  # a number before a symbol
        ((None, "N"), ("M", "K"), ("M", "N")),  # a symbol before an open size
        ((2, 3), (4, 5), (2, 3)),
        (None, (2, None), (2, None)),
        (("N",), None, ("N",)),
        (("N",), (2, 3), ("N",)),  # of another rank
    ],
)
def test_open_parts_are_filled_in(declared, inferred, expected):
    found = ValueSpec("x", None, declared).filled_in(ValueSpec("x", DType.FLOAT, inferred))
    assert found == ValueSpec("x", DType.FLOAT, expected)
    assert ValueSpec("x", DType.INT8, declared).filled_in(ValueSpec("x", DType.FLOAT, inferred)).dtype is DType.INT8


def test_sizes_are_the_known_dimensions():
    assert ValueSpec("x", None, (2, "n", None, 0)).sizes == (2, 0)
    assert not ValueSpec("x", None, (2, "n")).is_sized
    assert ValueSpec("x", None, ()).is_sized
    assert (ValueSpec("x", None, None).sizes, ValueSpec("x", None, None).is_sized) == ((), False)
