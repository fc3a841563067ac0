"""A line of a batch names the culprit whole, however long it and what is said besides are."""

import dataclasses

import pytest

from tensortriage_fleet.batch.batch_result import CellEnding, CellOutcome, CellResult
from tensortriage_fleet.batch.batch_text import cell_line

NODE = "/encoder/" + "layer/" * 50 + "Resize"


@pytest.mark.parametrize("node", ["/enc/down/Resize", NODE])
@pytest.mark.parametrize("reason", ["", "local-fault at {} (expected: nothing wrong): " + "many words " * 60])
def test_a_culprit_is_named_whole(node, reason):
    fields = {field.name: "" for field in dataclasses.fields(CellResult)}
    ending = CellEnding(1, 2.0, "local-fault", "Resize is wrong " * 40, node)
    outcome = CellOutcome.UNEXPECTED if reason else CellOutcome.AS_EXPECTED
    cell = CellResult(**{**fields, "name": "seg / img", "outcome": outcome, "reason": reason.format(node),
                         "ending": ending, "kept": False})  # fmt: skip
    line = cell_line(cell)
    assert f"local-fault at {node}" in line
    assert len(line) < 300 + len(node)


def test_long_words_are_cut_at_their_end():
    fields = {field.name: "" for field in dataclasses.fields(CellResult)}
    cell = CellResult(**{**fields, "name": "a", "outcome": CellOutcome.NOT_RUN, "reason": "x" * 500, "ending": None,
                         "kept": False})  # fmt: skip
    assert cell_line(cell).endswith("xxx…")
