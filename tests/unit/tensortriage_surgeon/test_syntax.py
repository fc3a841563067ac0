"""The expected values are Polygraphy 0.53.6's own: tools/args/util parse_meta; of outputs and bounds what is said."""

import pytest

from tensortriage.errors import UsageError
from tensortriage.values.dtype import DType
from tensortriage_surgeon.syntax import parse_bounds, parse_metadata, parse_outputs


def test_metadata():
    specs = parse_metadata(["x:0:[1,3]:float16", "y:auto:auto"])
    assert (specs["x:0"].shape, specs["x:0"].dtype) == ((1, 3), DType.FLOAT16)
    assert (specs["y"].shape, specs["y"].dtype) == (None, None)
    with pytest.raises(UsageError):
        parse_metadata(["[1,3]:float16"])


def test_outputs_have_a_type_or_leave_it_open():
    assert parse_outputs(["y:0:float16", "z:auto"]) == {"y:0": DType.FLOAT16, "z": None}
    with pytest.raises(UsageError) as caught:
        parse_outputs(["y"])
    assert (caught.value.slug, caught.value.cure) == ("output-malformed", "write y:auto")


def test_bounds_are_positive_and_of_a_name_or_of_all():
    assert parse_bounds(["1000", "boxes:300"]) == {"": 1000, "boxes": 300}
    with pytest.raises(UsageError) as caught:
        parse_bounds(["0"])
    assert caught.value.slug == "value-malformed"
