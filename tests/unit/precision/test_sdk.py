"""What number formats of other packages are written with: each name says what it is."""

import inspect

from tensortriage.precision import sdk

PLAIN_DATA = {"Opened", "Samples", "PLAIN", "Run"}


def test_every_name_says_what_it_is():
    names = {name for name in vars(sdk) if not name.startswith("_")}
    assert names >= {"NumberFormat", "Lab", "PrecisionGoal"} | PLAIN_DATA
    for name in names - PLAIN_DATA:
        assert inspect.getdoc(getattr(sdk, name)), name
