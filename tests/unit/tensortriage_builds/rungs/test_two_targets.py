"""Two targets of which one has a planted fault; which one, and where, is known."""

import pytest

from diagnosing import ask, step
from engine_scripts import engine_file
from tensortriage.engines.base import Plan, Region
from tensortriage_builds.rungs.two_targets import plan_changes
from tensortriage_testing import feed_for, mlp

NODE = "/layer.1/Gemm"
HEALTHY = "onnxruntime:optimization=basic"


@pytest.fixture(scope="module")
def network():
    model = mlp(width=12, layers=2, features=6, batch=4)
    return model, feed_for(model)


def faulty(folder):
    file = engine_file()
    return f"script:{file},kind=scale,node={NODE}"


def test_the_one_outside_the_envelope_is_diagnosed_though_it_was_named_second(network, tmp_path):
    verdict, _ = ask(tmp_path, *network, HEALTHY, against=faulty(tmp_path))
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", NODE)
    assert f"diverge first in '{NODE}_output_0' (Gemm '{NODE}')" in verdict.summary
    assert step(verdict, "do the two targets agree?").evidence["outside"] == [faulty(tmp_path)]
    rows = "do equal inputs give equal results?"  # who fails already is not asked
    assert rows not in {each.question for each in verdict.steps}


def test_two_healthy_targets_agree_within_what_both_may_be_off_by(network, tmp_path):
    verdict, _ = ask(tmp_path, *network, HEALTHY, against="emulate:precision=bf16")
    assert verdict.verdict == "match"
    assert step(verdict, "do the two targets agree?").answer.startswith("yes: ")
    assert "neither" in verdict.summary


def test_another_target_that_does_not_answer_is_the_one_that_is_looked_into(network, tmp_path):
    (tmp_path / "broken.py").write_text(
        "class Engine:\n    def compile(self, model, options):\n        raise OSError('x')\n"
    )
    verdict, _ = ask(tmp_path, *network, HEALTHY, against=f"script:{tmp_path / 'broken.py'}")
    assert verdict.verdict == "build-failed"
    assert step(verdict, "do the two targets agree?").answer.startswith("unknown: ")
    assert "broken.py gives no outputs" in verdict.summary


def test_changes_of_a_plan_are_told_by_sort_in_the_order_of_the_first():
    first = Plan((Region("a", ("conv", "relu"), "", "float32", "jit"), Region("b", ("gemm",), "", "float32", "ref")))
    other = Plan(
        (
            Region("x", ("conv",), "", "float32", "jit"),
            Region("y", ("relu",), "", "float32", "eltwise"),
            Region("z", ("gemm",), "", "bfloat16", "brgemm"),
        )
    )
    assert [(change.what, change.nodes) for change in plan_changes(first, other)] == [
        ("fusion", ("conv", "relu")),
        ("precision", ("gemm",)),
        ("tactic", ("gemm",)),
    ]
    assert plan_changes(first, first) == []
