import pytest

from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.workflows.diagnosis.in_blocks import BlockFigure, weightiest


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["match"], 1),
        (["match", "rounding"], 2),
        (["inconclusive", "rounding", "match"], 1),
        (["rounding", "inconclusive", "local-fault"], 3),
        (["rounding", "rounding"], 1),
    ],
)
def test_what_is_not_explained_in_one_block_is_not_outweighed_by_another(words, number):
    found = [
        (BlockFigure(place, 2.0, False, "v"), Verdict(word, 0.9, "summary"))
        for place, word in enumerate(words, start=1)
    ]
    assert weightiest(found)[0].number == number
