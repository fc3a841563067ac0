"""Ladder of IREE."""

from tensortriage_engines.iree.engine import IreeEngine

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
