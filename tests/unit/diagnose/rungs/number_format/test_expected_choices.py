"""A GPU that keeps sums of fp16 products in fp16 is healthy; an op that errs more than that is still named."""

import pytest

from diagnosing import ask
from engine_scripts import engine_file
from tensortriage_testing import encoder, feed_for

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

QUESTIONS = {
    "expected": "is the error expected of this class of hardware?",
    "alone": "is any op wrong in isolation?",
}
GPU = "precision=fp16,accumulator=fp16,block=8,hardware=gpu"


def diagnosed(tmp_path, options):
    file = engine_file("from tensortriage_testing import SimulatedAccelerator as Engine\n")
    model = encoder(layers=2, width=256, tokens=16, seed=4)
    verdict, _ = ask(tmp_path, model, feed_for(model), f"script:{file},{options}")
    return verdict, [name for name, question in QUESTIONS.items() if question in {s.question for s in verdict.steps}]


def test_what_gpus_choose_is_told_and_no_op_is_run_alone(tmp_path):
    verdict, asked = diagnosed(tmp_path, GPU)
    assert verdict.verdict == "rounding", verdict.summary
    assert "sums kept in fp16, usual on GPUs" in verdict.summary
    assert asked == ["expected"]


def test_a_product_two_percent_too_large_shows_where_it_is_made(tmp_path):
    node = "/layer.0/mlp/fc1/MatMul"
    verdict, asked = diagnosed(tmp_path, f"{GPU},kind=scale,node={node},amount=1.02")
    assert verdict.verdict == "local-fault", verdict.summary
    assert verdict.culprits[0].node == node
    assert asked == ["expected", "alone"]
