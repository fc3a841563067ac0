"""Ladder of MNN."""

from tensortriage_engines.mnn.engine import MnnEngine

ENGINE = MnnEngine()


def test_the_ladder_begins_with_an_exact_gelu():
    assert [words for words, _ in ENGINE.ladder({})] == ["precision=fp32,gelu=exact", "as given"]
    rungs = ENGINE.ladder({"precision": "int8"})
    assert [words for words, _ in rungs] == ["precision=fp32,gelu=exact", "precision=fp32", "as given"]
    assert rungs[-1][1] == {"precision": "int8"}
