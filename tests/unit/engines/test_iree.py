"""Options and ladder of IREE."""

import pytest

from tensortriage.engines.iree import IreeEngine
from tensortriage.errors import EngineMissing, UsageError

ENGINE = IreeEngine()


def test_the_ladder_goes_up_level_by_level():
    rungs = ENGINE.ladder({"optimize": "O2", "flag.some-flag": ""})
    assert [words for words, _ in rungs] == [
        "precision=fp32,optimize=O0",
        "precision=fp32,optimize=O1",
        "precision=fp32,optimize=O2",
        "as given",
    ]
    assert [words for words, _ in ENGINE.ladder({})] == ["precision=fp32,optimize=O0", "as given"]


def test_wrong_options_are_refused():
    for options in ({"optimize": "O9"}, {"precision": "int8"}, {"file": "model.vmfb"}):
        with pytest.raises(UsageError):
            ENGINE.check(options)


def test_without_its_environment_it_is_missing_and_says_how_to_get_it():
    with pytest.raises(EngineMissing) as caught:
        ENGINE.check({"optimize": "o1", "flag.iree-llvmcpu-target-cpu": "generic"})
    assert caught.value.cure == "triage engines install iree"
