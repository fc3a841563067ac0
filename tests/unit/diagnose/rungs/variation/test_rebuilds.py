"""Builds that differ by what their hardware may choose are all healthy; one with a fault on top of that is not."""

import pytest

from diagnosing import ask, step
from tensortriage_testing import encoder, feed_for

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

TACTICS = """
from pathlib import Path
import onnx
from tensortriage_testing import SimulatedAccelerator

COUNT = Path(__file__).with_name("count")
SUMS_IN_FP16, WHOLE_MODEL = 1, False

class Engine(SimulatedAccelerator):
    '''Every second build keeps the sums of its products in fp16; the options name what is wrong in these, too.'''
    def builds_vary(self, options):
        return True
    def compile(self, path, options):
        number = int(COUNT.read_text()) if COUNT.exists() else 0
        COUNT.write_text(str(number + 1))
        alone = len(onnx.load(path).graph.input) > 3
        if number % 2 != SUMS_IN_FP16 or (alone and WHOLE_MODEL):
            return super().compile(path, {"precision": "fp16"})
        return super().compile(path, {**options, "accumulator": "fp16", "block": "8"})
"""
NODE = "/layer.0/mlp/fc1/MatMul"


def diagnosed(tmp_path, options, *, first=False, whole=False):
    """Diagnose the engine; it keeps sums in fp16 from the first build on or the second, of the whole model or all."""
    chosen = f"SUMS_IN_FP16, WHOLE_MODEL = {int(not first)}, {whole}"
    (tmp_path / "tactics.py").write_text(TACTICS.replace("SUMS_IN_FP16, WHOLE_MODEL = 1, False", chosen))
    model = encoder(layers=2, width=256, tokens=16, seed=4)
    return ask(tmp_path, model, feed_for(model), f"script:{tmp_path / 'tactics.py'},precision=fp16,{options}")[0]


def test_a_build_that_keeps_sums_in_fp16_is_as_good_as_others_on_a_gpu(tmp_path):
    """What it costs is beyond rounding of results to fp16, and within what GPUs are expected to choose."""
    verdict = diagnosed(tmp_path, "hardware=gpu")
    assert verdict.verdict == "rounding", verdict.summary
    assert step(verdict, "are the outputs equal from build to build?").answer.startswith("no: ")


def test_a_build_with_a_product_too_large_on_top_of_that_is_not(tmp_path):
    verdict = diagnosed(tmp_path, f"hardware=gpu,kind=scale,node={NODE},amount=1.2")
    assert verdict.verdict == "intermittent", verdict.summary


@pytest.mark.parametrize(("first", "whole"), [(False, False), (True, False), (True, True)])
def test_builds_that_take_one_freedom_or_not_are_healthy_on_any_hardware(tmp_path, first, whole):
    """Whether it is the deployed build that keeps sums in fp16, or that in which ops are alone, makes no difference."""
    verdict = diagnosed(tmp_path, "hardware=any", first=first, whole=whole)
    assert verdict.verdict == "rounding", verdict.summary
    answer = step(verdict, "are the outputs equal from build to build?").answer
    assert answer.endswith("some use a freedom: sums kept in fp16, usual on GPUs and NPUs")


def test_a_fault_in_some_builds_on_any_hardware_is_none_of_its_freedoms(tmp_path):
    verdict = diagnosed(tmp_path, f"hardware=any,kind=scale,node={NODE},amount=1.2")
    assert verdict.verdict == "intermittent", verdict.summary
