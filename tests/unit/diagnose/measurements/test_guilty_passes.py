"""Which passes are to blame, asked of targets whose guilty passes are known."""

import pytest

from tensortriage.diagnose.measurements.guilty_passes import MOST_CHECKS, guilty_passes

PASSES = [f"Pass{number}" for number in range(60)]


@pytest.mark.parametrize("guilty", [{"Pass0"}, {"Pass59"}, {"Pass17"}, {"Pass3", "Pass41"}])
def test_those_that_break_it_together(guilty):
    asked = []

    def right(absent):
        asked.append(absent)
        return bool(guilty & {*absent})

    assert {*guilty_passes(PASSES, right)} == guilty
    assert len(asked) <= MOST_CHECKS + 2


def test_none_where_leaving_all_out_does_not_cure_it():
    assert guilty_passes(PASSES, lambda absent: False) == ()
    assert guilty_passes([], lambda absent: True) == ()
    assert guilty_passes(PASSES, lambda absent: None) == ()


def test_none_where_no_pass_breaks_it():
    assert guilty_passes(PASSES, lambda absent: True) == ()
