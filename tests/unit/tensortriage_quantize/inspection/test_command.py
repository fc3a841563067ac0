"""The lines about a pair; ranges are given."""

import dataclasses

import pytest

from tensortriage_quantize.inspection.command import row_lines
from tensortriage_quantize.inspection.quantizer_rows import PairRow


def row(**facts):
    given = {"observed": (-5.3, 3.3), "representable": (-13.4, 10.5), "observed_on": "real.npz[3]", "clipped": 0.0,
             "node": "q", "words": "", "design": "", "alone": 0.01, "dtype": "uint8"} | facts  # fmt: skip
    return PairRow(**{field.name: given.get(field.name) for field in dataclasses.fields(PairRow)})


def test_a_range_of_more_than_twice_what_samples_give_is_told():
    """13.4 over 5.3."""
    *_, last = row_lines(1, row())
    assert last.strip().startswith("holds 2.5 times what any of these samples gives")


@pytest.mark.parametrize(
    "facts", [{"representable": (-9.0, 9.0)}, {"observed_on": ""}, {"words": "its scale is too large"}]
)
def test_nothing_is_told_of_another(facts):
    assert not any("times what any" in line for line in row_lines(1, row(**facts)))
