"""ONNX Runtime multiplies by weights of 4 bits in int8: predicted by a row, as good for `run` as for `diagnose`."""

import numpy as np
import pytest

from diagnosing import ask, step
from four_bits import product
from models import write
from running_cli import triage
from tensortriage.diagnose.rungs.number_format.stages import integer_arithmetic

pytestmark = pytest.mark.slow

FEED = {"x": np.random.default_rng(4).standard_normal((5, 256)).astype(np.float32)}


def test_activations_in_int8_are_no_fault_of_a_fusion(tmp_path):
    verdict, _ = ask(tmp_path, product(terms=256, block=32), FEED, "onnxruntime", random_too=False)
    if verdict.verdict == "match":
        pytest.skip("this processor has no kernel in int8")
    assert (verdict.verdict, verdict.allowed_by) == ("rounding", ("int8-activations",)), verdict.summary
    assert abs(step(verdict, integer_arithmetic.title).evidence["gap_db"]["y"]) < 0.1


def test_a_product_that_is_as_far_off_alone_is_at_fault(tmp_path):
    """By 5e-3, as much as int8 costs where it is fused with its weight."""
    target = "fault:kind=scale,node=product,amount=1.005"
    verdict, _ = ask(tmp_path, product(terms=256, block=32), FEED, target, random_too=False)
    assert verdict.verdict == "local-fault", verdict.summary


@pytest.mark.lengthy
def test_run_is_of_one_mind_with_diagnose(tmp_path):
    write(tmp_path / "model.onnx", product(terms=256, block=32))
    np.savez(tmp_path / "feed.npz", **FEED)
    asked = ("run", tmp_path / "model.onnx", "--inputs", tmp_path / "feed.npz", "--target", "onnxruntime")
    found = triage(*asked, cwd=tmp_path)
    assert found.returncode == 0, found.stdout
