"""A constant that is right for the size of an exporter's example; the other side computes with the size that is fed."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.search import Unexplained, explained

X = np.random.default_rng(5).standard_normal((2, 40)).astype(np.float32)


def told(op, kept, other, sizes=None):
    """Return what is said of an op with this constant, next to numpy's result with another one."""
    one = model(f"g (float[2,n] x) => (float[2,n] y) <float c = {{{kept!r}}}> {{ [op] y = {op}(x, c) }}")
    c = np.float32(other)
    theirs = {"Mul": X * c, "Div": X / c, "Add": X + c, "Sub": X - c}[op]
    limit = 1e-6 * np.abs(theirs).max()
    subject = Unexplained(
        one, lambda changed: {"y": run(changed, x=X)}, {"y": theirs},
        lambda _, made: {"y": limit} if np.abs(made["y"] - theirs).max() <= limit else None,
        {"x": X}, sizes={"width": 40} if sizes is None else sizes,
    )  # fmt: skip
    found = explained(subject, ())
    return "" if found is None else found.ways["op"].words


@pytest.mark.parametrize(
    ("op", "kept", "other"),
    [
        ("Div", 16 / 24, 16 / 40),
        ("Mul", 24 / 8, 40 / 8),
        ("Mul", 24**-0.5, 40**-0.5),
        ("Div", 24.0**2, 40.0**2),
        ("Add", 24.0, 40.0),
        ("Sub", 1 / 24, 1 / 40),
    ],
)
def test_a_constant_of_the_example_is_told_with_its_size(op, kept, other):
    assert "whose 'width' was 24, and here that is 40" in told(op, kept, other)


@pytest.mark.parametrize(
    ("kept", "other", "sizes"),
    [
        (16 / 24, 16 / 24 * 1.17, None),  # 46.8 is no size
        (0.37, 0.37 * 40 / 24, None),  # of no size is 0.37 a whole multiple, or its reciprocal
        (16 / 24, 16 / 40, {}),  # no dimension is open
        (16 / 24, -16 / 40, None),
    ],
)
def test_other_constants_are_none_of_an_example(kept, other, sizes):
    assert told("Mul", kept, other, sizes) == ""
