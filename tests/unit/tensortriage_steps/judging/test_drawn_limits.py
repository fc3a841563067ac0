"""Limits by draws: a state-space decoder that rounds each result once is left in peace, one that is off is not."""

import numpy as np
import pytest

from tensortriage_steps.judging.drawn_limits import in_doubt, may_be_chance
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.steps_report import StepRow, StepValue
from tensortriage_steps.walk import walk
from tensortriage_testing import save_model
from tensortriage_testing.graph_writer import GraphWriter, floats, integers

WORDS, WIDTH, STATES = 31, 12, 4


def state_space(seed):
    """Return a model of two layers ``h = exp(d a) h + d x b``, ``y = c h``; ``d``, ``b`` and ``c`` follow from x."""
    g = GraphWriter(seed)
    x = g.op("Gather", g.normal("embed", (WORDS, WIDTH), 1.0), "input_ids", name="embed", axis=0)
    inputs, outputs = [integers("input_ids", 1)], [floats("logits", 1, WORDS)]
    for layer in range(2):

        def op(op_type, *given, name, layer=layer, **more):
            return g.op(op_type, *given, name=f"layer.{layer}/{name}", **more)

        mean = op("ReduceMean", op("Mul", x, x, name="square"), name="mean", axes=[-1])
        root = op("Sqrt", op("Add", mean, g.scalar("tiny", 1e-5), name="more"), name="root")
        u = op("Div", x, root, name="norm")
        step = op("Softplus", op("MatMul", u, g.normal(f"d.{layer}", (WIDTH, WIDTH), 0.5), name="to_d"), name="d")
        step = op("Reshape", step, g.indices("column", 1, WIDTH, 1), name="d_column")
        read, write = (
            op("Reshape", op("MatMul", u, g.normal(f"{w}.{layer}", (WIDTH, STATES), 0.5), name=f"to_{w}"),
               g.indices("row", 1, 1, STATES), name=w)
            for w in ("c", "b")
        )  # fmt: skip
        decay = g.weight(f"a.{layer}", -np.arange(1, STATES + 1, dtype=np.float32).reshape(1, 1, STATES) / 4)
        kept = op("Mul", op("Exp", op("Mul", step, decay, name="da"), name="exp"), f"past_state.{layer}", name="keep")
        u = op("Reshape", u, g.indices("column", 1, WIDTH, 1), name="u_column")
        new = op("Mul", op("Mul", step, u, name="du"), write, name="add")
        op("Add", kept, new, name="state")
        state = g.publish(f"present_state.{layer}")
        y = op("ReduceSum", op("Mul", state, read, name="read"), g.indices("last", -1), name="sum", keepdims=0)
        out = op("MatMul", y, g.normal(f"out.{layer}", (WIDTH, WIDTH), 1 / WIDTH**0.5), name="out")
        x = op("Add", x, out, name="residual")
        inputs.append(floats(f"past_state.{layer}", 1, WIDTH, STATES))
        outputs.append(floats(state, 1, WIDTH, STATES))
    g.op("MatMul", x, g.normal("head", (WIDTH, WORDS), 0.5), name="head")
    g.publish("logits")
    return g.finish("state_space", inputs, outputs)


@pytest.fixture
def ask(tmp_path):
    def run(seed, target, **more):
        path = tmp_path / "model.onnx"
        save_model(state_space(seed), path)
        return walk(StepsRequest(model=path, target=target, steps=12, case=tmp_path / "case", **more))

    return run


@pytest.mark.lengthy
@pytest.mark.parametrize(("seed", "precision"), [(1, "fp16"), (1, "bf16"), (2, "bf16")])
def test_a_state_space_decoder_that_rounds_each_result_once_is_healthy(ask, seed, precision):
    report = ask(seed, f"emulate:precision={precision}")
    assert (report.verdict, report.exit_code) == ("drift", 0), report.summary


@pytest.mark.lengthy
def test_an_op_that_is_wrong_by_less_than_chance_may_be_is_found_by_the_diagnosis(ask, tmp_path):
    """A product that is 6 % too large, in bf16."""
    script = tmp_path / "faulty.py"
    script.write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    target = f"script:{script}:Engine,kind=scale,amount=1.06,node=layer.1/out,precision=bf16"
    report = ask(0, target)
    assert (report.verdict, report.exit_code) == ("fault", 1), report.summary
    assert report.diagnosis is not None
    assert report.diagnosis.node == "layer.1/out"


def row(step, *ratios, drifted=()):
    """A step whose values are off by these multiples of their limits."""
    values, own = (
        tuple(StepValue(f"v{n}", ratio, ratio, ratio <= 1, 1.0) for n, ratio in enumerate(each))
        for each in (ratios, drifted)
    )
    return StepRow(step, 1, values, own)


def test_what_is_beyond_its_limit_by_a_little_may_be_chance():
    assert not in_doubt([row(0, 0.5), row(1, 1.0)])
    assert in_doubt([row(0, 0.5), row(1, 1.8), row(2, 99.0)])
    assert not in_doubt([row(0, 99.0), row(1, 1.8)])  # it is wrong anyway
    assert not in_doubt([row(0, 1.8, 99.0)])
    assert in_doubt([row(0, 0.5, drifted=[1.2])])
    assert not in_doubt([row(0, 0.5, drifted=[12.0])])
    assert not may_be_chance(StepValue("v", np.inf, np.inf, False, 1.0))
    assert not may_be_chance(StepValue("v", 1.0, 1.0, False))
