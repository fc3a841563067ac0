"""Engines that time their kernels are built few times: seams are marked, and nothing is tried that cannot help."""

import json

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from diagnosing import ask, named, step
from tensortriage.diagnose.measurements.in_context import marked_values
from tensortriage.diagnose.measurements.in_context.marked_values import hidden_values
from tensortriage.engines.base import Plan, Region
from tensortriage.model.model import Model

PAIRS = 5
NAMES = [f"{kind}{number}" for number in range(PAIRS) for kind in ("product", "bend")]
TIMED = """
import json
from pathlib import Path
from tensortriage.engines.base import Plan, Region
from tensortriage.engines.capabilities import PinsTactics
from tensortriage_testing import SimulatedAccelerator

BUILDS = Path(__file__).with_name("builds.jsonl")

class Engine(SimulatedAccelerator, PinsTactics):
    '''Runs every product and the function behind it as one, unless the value between them is marked.'''
    def builds_vary(self, options):
        return True
    def recording(self, options):
        return options
    def pinning(self, options, record):
        return options
    def compile(self, path, options):
        session = super().compile(path, options)
        with BUILDS.open("a") as file:
            file.write(json.dumps([spec.name for spec in session.outputs]) + "\\n")
        pairs = [Region(f"r{n}", (f"product{n}", f"bend{n}")) for n in range(5)]
        session.plan = lambda: Plan(tuple(pairs))
        return session
"""


def chain():
    """Return the message of five products with a function behind each, and a constant that folding takes away."""
    lines = "\n".join(
        f"p{n} = MatMul({'moved' if n == 0 else f'b{n - 1}'}, w{n})\n"
        f"{'y' if n == PAIRS - 1 else f'b{n}'} = {'Relu' if n % 2 else 'Tanh'}(p{n})"
        for n in range(PAIRS)
    )
    made = named(
        f"""<ir_version: 8, opset_import: ["": 17]> main (float[64, 96] x) => (float[64, 96] y)
        <float one = {{0.5}}> {{
        two = Add(one, one)
        moved = Add(x, two)
        {lines}
        }}""",
        "twice",
        "move",
        *NAMES,
    )
    rng = np.random.default_rng(5)
    for number in range(PAIRS):
        weight = rng.normal(0, 0.12, (96, 96)).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(weight, f"w{number}"))
    return made


@pytest.fixture(autouse=True)
def scripts_time_kernels(monkeypatch):
    """Those of a user do not, as far as anybody knows."""
    monkeypatch.setattr(marked_values, "times_kernels", lambda _: True)


FEED = {"x": np.random.default_rng(6).normal(size=(64, 96)).astype(np.float32)}


def diagnosed(tmp_path, options, **given):
    """Diagnose the chain; return the verdict and the outputs of every model that was built with others than its own."""
    (tmp_path / "timed.py").write_text(TIMED)
    target = f"script:{tmp_path / 'timed.py'},hardware=gpu,precision=fp16{options}"
    verdict, _ = ask(tmp_path, chain(), FEED, target, **given)
    builds = [json.loads(line) for line in (tmp_path / "builds.jsonl").read_text().splitlines()]
    return verdict, [outputs for outputs in builds if outputs != ["y"]]


@pytest.mark.lengthy
def test_marks_lie_at_the_seams_of_what_runs_as_one(tmp_path):
    verdict, builds = diagnosed(tmp_path, ",accumulator=fp16,block=8", builds=1)
    assert verdict.verdict == "rounding", verdict.summary
    assert builds == [["moved", "b0", "b1", "b2", "b3", "y"]]
    assert step(verdict, "what do the layers look like?").answer.startswith("0 of 6 tensors")


@pytest.mark.lengthy
def test_layers_are_not_marked_where_several_builds_are_off_by_what_the_format_predicts(tmp_path):
    verdict, builds = diagnosed(tmp_path, "", builds=1)
    assert verdict.verdict == "rounding", verdict.summary
    assert builds == []


def test_they_are_where_no_other_build_was_compared(tmp_path):
    verdict, builds = diagnosed(tmp_path, "", builds=0)
    assert (verdict.verdict, len(builds)) == ("rounding", 1)


@pytest.mark.lengthy
@pytest.mark.parametrize("number", [0, 3])
def test_a_product_too_large_is_named_without_building_what_holds_it_still(tmp_path, number):
    """One build with marks, one of all ops apart, one of the op alone, for what it may understand otherwise.

    The sanitized model has the wrong op as well.
    """
    verdict, builds = diagnosed(tmp_path, f",kind=scale,node=product{number},amount=1.02", builds=1)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", f"product{number}"), verdict.summary
    assert [len(outputs) for outputs in builds] == [6, 12, 1]
    assert "sanitized" not in step(verdict, "is there a change that makes the target right?").answer


@pytest.mark.lengthy
def test_a_rebuild_that_the_budget_does_not_hold_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("tensortriage.diagnose.rungs.variation.intermittent.affords", lambda inv, builds: False)
    verdict, builds = diagnosed(tmp_path, ",accumulator=fp16,block=8")
    assert verdict.verdict == "rounding", verdict.summary
    assert len(builds) == 1
    left_out = step(verdict, "which questions were skipped for lack of time?").answer
    assert left_out == "are the outputs equal from build to build?"


def test_what_a_plan_hides():
    """A value inside of a small region, a constant, a shape; but nothing of a region that a compiler made of most."""
    graph = Model.from_ir(ir.from_proto(chain())).graph
    pairs = Plan(tuple(Region(f"r{n}", (f"product{n}", f"bend{n}")) for n in range(PAIRS)))
    assert hidden_values(pairs, graph, ["x"]) == {"two", *(f"p{n}" for n in range(PAIRS))}
    most = Plan((Region("f", tuple(NAMES[:6])), Region("g", ("product3", "bend3"))))
    assert hidden_values(most, graph, ["x"]) == {"two", "p3"}
    assert hidden_values(Plan(()), graph, ["x"]) == {"two"}
