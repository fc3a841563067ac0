"""Rows of outputs: an error of one percent is planted, of which 40 dB are -20 log10."""

import dataclasses

import numpy as np
import pytest

from tensortriage.diagnose.measurements.output_rows import output_rows
from tensortriage.diagnose.measurements.outputs import deployed, judge, output_floors
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind

MODEL = """g (float[2, 3] x) => (float[2, 3] y, int64[2] n) {
    [work] y = Exp(x)
    [size] n = Shape(x)
}"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_row_shows_the_feed_on_which_its_output_is_worst(investigate):
    inv = investigate(MODEL, {"x": X}, {"x": -X}, target="faulty:kind=scale,node=work,amount=1.01,length=3")
    floors = output_floors(inv)
    results = tuple(judge(inv, feed, deployed(inv, feed), floors) for feed in inv.question.feeds)
    verdict = Conclusion(VerdictKind.LOCAL_FAULT, 1.0, "")
    rows = {row.name: row for row in output_rows(results, inv, verdict)}
    assert (rows["y"].dtype, rows["y"].shape, rows["y"].within) == ("float32", (2, 3), False)
    assert rows["y"].sqnr_db == pytest.approx(40.0, abs=0.01)  # -20 log10(0.01)
    assert rows["y"].floor == floors.fp32["y"]
    assert rows["y"].feed == max(results, key=lambda each: each.errors["y"]).feed.name
    assert not rows["y"].needs_sentence
    assert (rows["n"].sqnr_db, rows["n"].relative_rms_error, rows["n"].floor) == (None, None, None)
    assert (rows["n"].max_abs_error, rows["n"].needs_sentence, rows["n"].within) == (0.0, True, True)
    assert (rows["y"].allowed_by, rows["n"].allowed_by) == ("", "order-of-sums")
    explained = Conclusion(VerdictKind.ROUNDING, 1.0, "", allowed_by=("fp16-accumulator", "winograd"))
    row = next(row for row in output_rows(results, inv, explained) if row.name == "y")
    assert (row.within, row.allowed_by) == (True, "fp16-accumulator+winograd")
    lost = dataclasses.replace(explained, lost=True)
    assert not next(row for row in output_rows(results, inv, lost) if row.name == "y").within
    assert output_rows((), inv, verdict) == ()
