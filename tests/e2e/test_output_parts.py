"""Boxes and scores in one tensor: where every score is lost, no command passes it, and says which part it is."""

import numpy as np
import pytest

from models import parse
from running_cli import triage, verdict_in

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

MODEL = """g (float[2,8] x) => (float[2,%s] y) <float[8,4] w, float[8,3] v, float[1] size = {640.0}> {
  b = MatMul(x, w)  sized = Sigmoid(b)  boxes = Mul(sized, size)
  [logit] s = MatMul(x, v)  scores = Sigmoid(s)
  y = Concat<axis=1>(boxes, scores)
}"""
ENGINE = "from tensortriage_testing import FaultyEngine as Engine\n"
LOST = "script:planted.py,kind=scale,node=scores,amount=0"


@pytest.fixture
def detector(tmp_path):
    rng = np.random.default_rng(0)
    text = MODEL % 7
    for name, shape in (("w", (8, 4)), ("v", (8, 3))):
        numbers = ", ".join(f"{number:.6f}" for number in rng.standard_normal(shape).ravel())
        text = text.replace(
            f"float[{shape[0]},{shape[1]}] {name}", f"float[{shape[0]},{shape[1]}] {name} = {{{numbers}}}"
        )
    text = text.replace("scores = Sigmoid(s)", "[scores] scores = Sigmoid(s)")
    parse(text).save(tmp_path / "detector.onnx")
    np.savez(tmp_path / "x.npz", x=rng.standard_normal((2, 8)).astype(np.float32))
    (tmp_path / "planted.py").write_text(ENGINE)
    return tmp_path


def asked(command, folder, target, *words):
    return triage(command, "detector.onnx", "--inputs", "x.npz", "--target", target, *words, cwd=folder)


def test_a_part_that_is_lost_is_lost(detector):
    run = asked("run", detector, LOST)
    assert run.returncode == 1, run.stdout
    assert "y[scores]" in run.stdout
    diagnosed = asked("diagnose", detector, LOST, "--case", "case", "--no-repro")
    assert diagnosed.returncode == 1, diagnosed.stdout
    verdict = verdict_in(detector / "case")
    assert verdict["verdict"] == "local-fault"
    assert verdict["culprits"][0]["node"] == "scores"
    assert "y[scores]" in diagnosed.stdout


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_what_a_format_costs_a_part_is_allowed_it(detector, precision):
    target = f"emulate:precision={precision}"
    assert asked("run", detector, target).returncode == 0
    assert asked("diagnose", detector, target, "--case", "case").returncode == 0


@pytest.mark.parametrize(("amount", "code"), [("0.9999", 0), ("1", 2)])
def test_a_reduction_judges_by_the_same_parts(detector, amount, code):
    """An error of 1e-4 of the scores is one of 2e-7 of the whole, within the limit of an fp32 engine."""
    target = f"script:planted.py,kind=scale,node=scores,amount={amount}"
    given = ["detector.onnx", "--inputs", "x.npz", "--target", target, "-o", "smallest.onnx"]
    done = triage("debug", "reduce", *given, cwd=detector)
    assert done.returncode == code, done.stdout + done.stderr
    if code == 0:
        assert "Sigmoid 'scores' -> 'scores'" in done.stdout
        assert "in the whole model 'y[scores]' is wrong by 1.0e-04" in done.stdout
