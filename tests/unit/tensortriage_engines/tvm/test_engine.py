"""Ladder of TVM."""

from tensortriage_engines.tvm.engine import TvmEngine

ENGINE = TvmEngine()


def test_the_ladder_begins_without_fusion():
    assert [words for words, _ in ENGINE.ladder({})] == [
        "optimize=0,left_out=FuseOps+FoldConstant",
        "optimize=0",
        "as given",
    ]
