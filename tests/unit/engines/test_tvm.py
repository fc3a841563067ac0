"""Options and ladder of TVM."""

import pytest

from tensortriage.engines.tvm import TvmEngine
from tensortriage.errors import EngineMissing, UsageError

ENGINE = TvmEngine()


def test_the_ladder_begins_without_fusion():
    assert [words for words, _ in ENGINE.ladder({})] == [
        "optimize=0,left_out=FuseOps+FoldConstant",
        "optimize=0",
        "as given",
    ]


def test_wrong_options_are_refused():
    for options in ({"optimize": "9"}, {"passes": "FuseOps"}):
        with pytest.raises(UsageError):
            ENGINE.check(options)


def test_without_its_environment_it_is_missing_and_says_how_to_get_it():
    with pytest.raises(EngineMissing) as caught:
        ENGINE.check({"left_out": "FuseOps"})
    assert caught.value.cure == "triage engines install tvm"
