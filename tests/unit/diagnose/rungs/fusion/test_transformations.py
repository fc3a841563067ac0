"""Rungs of configuration that a script offers: the first wrong one is told, one that cannot be built says nothing."""

import numpy as np
import pytest

from diagnosing import ask, named, step
from engine_scripts import engine_file

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

CHAIN = """main (float[4, 8] x) => (float[4, 8] y) {
    a = Sin(x)
    b = Mul(a, x)
    y = Tanh(b)
}"""

ENGINE = """
from tensortriage_testing import FaultyEngine


class Engine:
    def ladder(self, options):
        return [(level, {"level": level}) for level in ("broken", "safe", "middle", "fast")]

    def compile(self, model, options):
        level = options["level"]
        if level == "broken":
            raise ValueError("no kernels at this level")
        right = level in %s
        return FaultyEngine().compile(model, {} if right else {"kind": "scale", "node": "mul"})
"""


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        (("safe",), "right with safe, wrong with middle"),
        (("safe", "middle"), "right with middle, wrong with fast"),
        ((), "at none: it fails with safe as well"),
    ],
    ids=["middle", "fast", "none"],
)
def test_the_first_rung_that_is_wrong_and_the_last_that_is_right(tmp_path, right, answer):
    file = engine_file(ENGINE % (right,))
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    target = f"script:{file},level=fast"
    verdict, _ = ask(tmp_path, named(CHAIN, "sin", "mul", "tanh"), {"x": x}, target, repro=False)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "mul")
    found = step(verdict, "in which configuration")
    assert found.answer == answer
    assert found.evidence["tried"]["broken"] is None
    working = f"level={right[-1]}" if right else "level="
    assert (working in verdict.next[0] and verdict.next[0].startswith("triage diagnose")) == bool(right)
