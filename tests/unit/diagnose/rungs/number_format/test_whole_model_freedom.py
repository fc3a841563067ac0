"""An engine that refuses the graph in which ops stand alone: one freedom taken everywhere is seen in its full run."""

import pytest

from diagnosing import ask, step
from engine_scripts import engine_file
from tensortriage.diagnose.rungs.number_format.stages import whole_model_freedom
from tensortriage_testing import encoder, feed_for

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

ENGINE = """
import onnx
from tensortriage.errors import BuildFailed
from tensortriage_testing import SimulatedAccelerator

class Engine(SimulatedAccelerator):
    def compile(self, path, options):
        if len(onnx.load(path).graph.input) > 3:
            raise BuildFailed("too many inputs", slug="build-failed")
        return super().compile(path, options)
"""


def diagnosed(tmp_path, options):
    file = engine_file(ENGINE)
    model = encoder(layers=2, width=256, tokens=16, seed=4)
    return ask(tmp_path, model, feed_for(model), f"script:{file},{options}")[0]


def test_sums_kept_in_fp16_everywhere_are_no_fault(tmp_path):
    verdict = diagnosed(tmp_path, "precision=fp16,accumulator=fp16,block=8")
    assert verdict.verdict == "rounding", verdict.summary
    assert "sums kept in fp16" in verdict.summary
    assert step(verdict, whole_model_freedom.title).evidence["freedoms"] == ["fp16-accumulator"]


def test_one_op_that_errs_by_as_much_is_not_explained(tmp_path):
    """It errs by less than the freedom would cost, but no other product does."""
    node = "/layer.0/mlp/fc1/MatMul"
    verdict = diagnosed(tmp_path, f"precision=fp16,kind=scale,node={node},amount=1.004")
    assert verdict.verdict != "rounding", verdict.summary
