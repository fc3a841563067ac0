"""What both engines generate alone: each row of a batch continues until its own tokens part."""

from pathlib import Path

import numpy as np
import pytest

from models import parse
from tensortriage.engines.spec import PLAIN
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.lab import Lab
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.judging.free_run import free_run
from tensortriage_steps.judging.measured_steps import MeasuredSteps
from tensortriage_steps.request import StepsRequest

TEXT = """
    g (int64[2, S] input_ids) => (float[2, S, 4] logits) <float[4, 4] table = {
        0, 1, 1, 0,
        0, 1, 0, 0,
        0, 0, 1, 0,
        0, 0, 0, 1}> { [look] logits = Gather(table, input_ids) }"""
"""After token 0 the tokens 1 and 2 are as good; every other token repeats itself."""


@pytest.mark.parametrize(("wrong", "found"), [(False, (0, 0, True, 0.0)), (True, (2, 1, False, 1.0))])
def test_a_row_that_parts_at_a_tie_hides_no_other(tmp_path, wrong, found):
    np.savez(tmp_path / "prompt.npz", input_ids=np.array([[0], [3]]))
    feeding = FeedRequest(paths=(str(tmp_path / "prompt.npz"),))
    request, model = StepsRequest(model=Path("m.onnx"), target="", steps=4, feeding=feeding), parse(TEXT)
    with Lab() as lab:
        feeds = StepFeeds(request, model)
        steps = MeasuredSteps(lab, model, feeds, reference=PLAIN, target=PLAIN, drift=False)

        def target(feed):
            logits = steps.reference(feed)["logits"].copy()
            logits[0, :, 2] = np.nextafter(logits[0, :, 2], np.float32(2))
            if wrong and logits.shape[1] == 3:
                logits[1, -1, 0] += 5
            return {"logits": logits}

        free = free_run(steps, feeds, target)
        same = free_run(steps, feeds, steps.reference)
    assert (free.first, free.row, free.tie, free.ahead) == found
    assert free.reference[0] == (1, 3)
    assert free.moved is not None
    assert (free.margin <= 1) is free.tie
    assert (same.first, same.ahead, same.target) == (None, None, same.reference)
