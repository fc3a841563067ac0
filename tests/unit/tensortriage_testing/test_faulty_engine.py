"""Planted faults: where they show, what they do, and that all else stays bit for bit right."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.numpy_helper import from_array, to_array

from tensortriage.engines.base import Limits
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.script import ScriptEngine
from tensortriage.errors import BuildFailed, EngineCrashed, EngineError, EngineHung, EngineOutOfMemory, UsageError
from tensortriage.model.cutting.explode import explode
from tensortriage.model.cutting.extract import extract
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.testing import check_engine_conformance
from tensortriage.values.spec import ValueSpec
from tensortriage_testing import Fault, FaultKind, FaultyEngine

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,4] x) => (float[2,4] y) <float[4,4] w = {1,2,3,4, -1,0,1,2, 0.5,0.25,-0.5,1, 2,-2,1,-1}> {
  [mm] a = MatMul(x, w)
  [soft] b = Softmax<axis = -1>(a)
  [mul] c = Mul(a, b)
  [mean] d = ReduceMean<axes = [1], keepdims = 1>(c)
  [sub] y = Sub(c, d)
}"""
X = {"x": np.array([[0.5, -1, 2, 0.25], [1.5, 0.125, -0.75, 1]], np.float32)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "m.onnx"
    onnx.save(parser.parse_model(TEXT), path)
    return path


def run(path: Path, fault: Fault | None, feed=X, **options: str):
    engine = type("Planted", (FaultyEngine,), {"fault": fault})()
    session = engine.compile(path, options)
    try:
        return session.run(feed)
    finally:
        session.close()


def healthy(path: Path, feed=X):
    session = OnnxRuntimeEngine().compile(path, {"optimization": "none"})
    try:
        return session.run(feed)
    finally:
        session.close()


def recorded(model: Model, values):
    return value_specs(model, {name: ValueSpec.of(name, value) for name, value in values.items()})


@pytest.fixture(scope="module")
def marked(model: Path) -> Path:
    """The model with every value as an output."""
    return mark_outputs(Model.load(model), ["a", "b", "c", "d"]).save(model.with_name("marked.onnx"))


def test_without_a_fault_or_its_node_all_is_right(model):
    right = healthy(model)["y"]
    assert run(model, None)["y"].tobytes() == right.tobytes()
    assert run(model, Fault("scale", node="elsewhere"))["y"].tobytes() == right.tobytes()


EXPECTED = {  # what a kind makes of the right value v; `test_fault_numbers` has them all
    "scale": lambda v: v * 1.05,
    "permute": lambda v: v.T.reshape(2, 4),
}


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("node", ["mm", "mul"])
def test_the_value_is_wrong_as_told_and_the_rest_follows_from_it(marked, kind, node):
    right, wrong = healthy(marked), run(marked, Fault(kind, node=node))
    value = {"mm": "a", "mul": "c"}[node]
    np.testing.assert_allclose(wrong[value], EXPECTED[kind](right[value].astype(np.float64)), rtol=1e-6)
    if node == "mul":
        assert wrong["a"].tobytes() == right["a"].tobytes()
        assert wrong["b"].tobytes() == right["b"].tobytes()
    np.testing.assert_allclose(wrong["y"], wrong["c"] - wrong["c"].mean(axis=1, keepdims=True), rtol=1e-5, atol=1e-6)


def test_amounts(marked):
    right = healthy(marked)["c"]
    np.testing.assert_allclose(run(marked, Fault("scale", node="mul", amount=3))["c"], right * 3, rtol=1e-6)
    np.testing.assert_allclose(run(marked, None, kind="scale", node="mul", amount="3")["c"], right * 3, rtol=1e-6)
    nan = run(marked, Fault("nan", node="mul", amount=5))["c"]
    assert np.flatnonzero(np.isnan(nan)).tolist() == [5]


BRANCHES = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x, float limit) => (float[2] y, bool more) {
  [sum] s = ReduceSum<keepdims = 0>(x)
  [large] more = Greater(s, limit)
  [choice] y = If (more) <
    then_branch = t () => (float[2] u) { [twice] a = Add(x, x) [up] u = Exp(a) },
    else_branch = e () => (float[2] v) { [down] v = Neg(x) }>
}"""


@pytest.mark.parametrize(("node", "large", "small"), [("twice", True, False), ("down", False, True)])
def test_a_fault_in_a_branch_shows_where_that_is_taken(tmp_path, node, large, small):
    path, x = tmp_path / "branches.onnx", np.array([1, 2], np.float32)
    onnx.save(parser.parse_model(BRANCHES), path)
    for limit, shows in ((2, large), (4, small)):
        feed = {"x": x, "limit": np.array(limit, np.float32)}
        right, wrong = run(path, None, feed), run(path, Fault("scale", node=node), feed)
        assert wrong["more"] == right["more"] == (limit == 2)
        faulty = np.exp(2 * x * np.float32(1.05)) if node == "twice" else -x * np.float32(1.05)
        np.testing.assert_allclose(wrong["y"], faulty if shows else right["y"], rtol=1e-6)


def test_noise_repeats_and_nondeterminism_does_not(model):
    engine = type("E", (FaultyEngine,), {"fault": Fault("noise", node="mul")})()
    session = engine.compile(model, {})
    assert session.run(X)["y"].tobytes() == session.run(X)["y"].tobytes() != healthy(model)["y"].tobytes()
    session.close()
    session = FaultyEngine().compile(model, {"kind": "nondeterministic", "node": "mul"})
    assert session.run(X)["y"].tobytes() != session.run(X)["y"].tobytes()
    session.close()


def test_stale_returns_the_previous_run(marked):
    session = FaultyEngine().compile(marked, {"kind": "stale", "node": "soft"})
    other = {"x": X["x"][::-1].copy()}
    first, second, third = session.run(X)["b"], session.run(other)["b"], session.run(other)["b"]
    session.close()
    np.testing.assert_array_equal(first, healthy(marked)["b"])
    np.testing.assert_array_equal(second, first)
    np.testing.assert_array_equal(third, healthy(marked, other)["b"])


def test_wrong_axis_normalises_the_other_one(marked):
    wrong = run(marked, Fault("wrong-axis", node="soft"))["b"]
    np.testing.assert_allclose(wrong.sum(axis=0), np.ones(4), rtol=1e-6)
    with pytest.raises(UsageError) as caught:
        run(marked, Fault("wrong-axis", node="mm"))
    assert caught.value.slug == "fault-unsupported"


def test_bf16_accumulation_rounds_every_partial_sum(marked):
    x = X["x"] / np.float32(3)
    w = np.array([1, 2, 3, 4, -1, 0, 1, 2, 0.5, 0.25, -0.5, 1, 2, -2, 1, -1], np.float32).reshape(4, 4)
    total = np.zeros((2, 4), np.float32)
    for k in range(4):
        total = (total + np.outer(x[:, k], w[k])).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(run(marked, Fault("bf16-accumulate", node="mm"), {"x": x})["a"], total)
    assert not np.array_equal(total, healthy(marked, {"x": x})["a"])
    mean = run(marked, Fault("bf16-accumulate", node="mean"))["d"]
    error = np.abs(mean - healthy(marked)["d"]).max()
    assert 0 < error < 0.1 * np.abs(healthy(marked)["c"]).max()


def test_names_survive_cuts_and_explosions_and_so_does_the_fault(model, tmp_path):
    whole = Model.load(model)
    fault = Fault("scale", node="mul", amount=2)
    golden = healthy(mark_outputs(whole, ["a", "b", "c", "d"]).save(tmp_path / "all.onnx"))
    specs = recorded(whole, golden)
    part = extract(whole, ["soft", "mul"], specs=specs).save(tmp_path / "part.onnx")
    np.testing.assert_allclose(run(part, fault, {"a": golden["a"]})["c"], golden["c"] * 2)
    exploded = explode(whole, specs=specs)
    feed = {name: {**golden, **X}[value] for name, value in exploded.feeds.items()}
    result = run(exploded.model.save(tmp_path / "exploded.onnx"), fault, feed)
    np.testing.assert_allclose(result.pop("c"), golden["c"] * 2)
    for name, value in result.items():  # no other unit inherits anything
        np.testing.assert_allclose(value, golden[name], rtol=1e-6, atol=1e-7)


def test_a_fusion_fault_needs_both_nodes_and_an_unmarked_value_between(model, marked, tmp_path):
    fault = Fault("scale", node="mul", amount=2, fused_with="soft")
    right = healthy(model)["y"]
    np.testing.assert_allclose(run(model, fault)["y"], right * 2, rtol=1e-6)
    np.testing.assert_array_equal(run(marked, fault)["y"], right)
    whole = Model.load(model)
    specs = recorded(whole, healthy(marked))
    alone = extract(whole, ["mul"], specs=specs).save(tmp_path / "alone.onnx")
    feed = {"a": healthy(marked)["a"], "b": healthy(marked)["b"]}
    np.testing.assert_array_equal(run(alone, fault, feed)["c"], healthy(marked)["c"])
    single, pairs = explode(whole, specs=specs), explode(whole, [["soft", "mul"]], specs=specs)
    for exploded, factor in ((single, 1), (pairs, 2)):
        values = {**healthy(marked), **X}
        feed = {name: values[value] for name, value in exploded.feeds.items()}
        result = run(exploded.model.save(tmp_path / "e.onnx"), fault, feed)["c"]
        np.testing.assert_allclose(result, values["c"] * factor, rtol=1e-6)


def test_the_plan_shows_the_fused_pair(model, marked):
    engine = FaultyEngine()
    options = {"kind": "scale", "node": "mul", "fused_with": "soft"}
    for path, regions in ((model, {("soft", "mul")}), (marked, {("soft",), ("mul",)})):
        session = engine.compile(path, options)
        names = {region.nodes for region in session.plan().regions}
        session.close()
        assert regions <= names


def test_a_fault_of_three_fused_nodes_needs_them_wired_to_each_other(model, marked, tmp_path):
    fault = Fault("scale", node="soft", amount=2, fused_with="mul+sub")
    right, wrong = healthy(model)["y"], run(model, fault)["y"]
    assert not np.allclose(wrong, right)
    np.testing.assert_array_equal(run(marked, fault)["y"], right)
    whole = Model.load(model)
    assert fault.shows_in(whole, recorded(whole, healthy(marked)))
    apart = Fault("scale", node="soft", amount=2, fused_with="mean")  # no value goes from one to the other
    np.testing.assert_array_equal(run(model, apart)["y"], right)


def test_a_fault_from_one_level_of_optimization_on(model):
    engine, fault = FaultyEngine(), {"kind": "scale", "node": "mul", "amount": "2", "from_level": "basic"}
    rungs = engine.ladder({**fault, "optimization": "all"})
    assert [label for label, _ in rungs] == ["optimization=none", "optimization=basic", "optimization=all"]
    shown = []
    for _, options in rungs:
        session = engine.compile(model, options)
        shown.append(not np.array_equal(session.run(X)["y"], healthy(model)["y"]))
        session.close()
    assert shown == [False, True, True]
    with pytest.raises(UsageError, match="level of optimization"):
        Fault("scale", node="mul", from_level="extreme")


def test_a_fault_of_one_element_type(model, tmp_path):
    fault = Fault("scale", node="mul", amount=2, dtype="float16")
    np.testing.assert_array_equal(run(model, fault)["y"], healthy(model)["y"])
    half = parser.parse_model(TEXT.replace("float[2,4] ", "float16[2,4] "))
    half.graph.initializer[0].CopyFrom(from_array(to_array(half.graph.initializer[0]).astype(np.float16), "w"))
    onnx.save(half, tmp_path / "half.onnx")
    feed = {"x": X["x"].astype(np.float16)}
    right = healthy(tmp_path / "half.onnx", feed)["y"].astype(np.float32)
    np.testing.assert_allclose(run(tmp_path / "half.onnx", fault, feed)["y"], 2 * right, rtol=0.01, atol=0.01)


def test_rounding_to_a_format_comes_on_top(marked):
    rounded = run(marked, None, precision="bf16")
    assert rounded["c"].tobytes() == rounded["c"].astype(ml_dtypes.bfloat16).astype(np.float32).tobytes()
    assert rounded["c"].tobytes() != healthy(marked)["c"].tobytes()
    both = run(marked, Fault("scale", node="mul", amount=1.5), precision="bf16")["c"]
    expected = (rounded["c"] * np.float32(1.5)).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(both, expected)
    assert FaultyEngine().precision({"precision": "bf16"}) == "bf16"


def test_builds_that_differ(model):
    engine = type("E", (FaultyEngine,), {"fault": Fault("sign", node="mul", build_chance=0.5)})()
    seen = set()
    for _ in range(64):  # all alike with a chance of 2**-63
        session = engine.compile(model, {})
        seen.add(session.run(X)["y"].tobytes())
        session.close()
        if len(seen) == 2:
            break
    assert len(seen) == 2


def test_refusals(model):
    with pytest.raises(BuildFailed):
        run(model, Fault("build-failure", node="mul"))
    with pytest.raises(EngineOutOfMemory):
        run(model, Fault("out-of-memory", node="mul"))
    for options in (
        {"kind": "nonsense", "node": "mul"},
        {"kind": "scale"},
        {"kind": "scale", "node": "mul", "output": "3"},
    ):
        with pytest.raises(UsageError):
            run(model, None, **options)


@pytest.mark.parametrize(
    ("kind", "error"), [("crash", EngineCrashed), ("hang", EngineHung), ("build-crash", EngineCrashed), ("scale", None)]
)
def test_as_a_script_engine_in_one_line(model, kind, error):
    script = model.with_name("faulty.py")
    script.write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    engine = ScriptEngine(limits=Limits(build_seconds=30, run_seconds=1))
    options = {"file": str(script), "kind": kind, "node": "mul"}

    def outcome():
        session = engine.compile(model, options)
        try:
            return session.run(X)["y"]
        finally:
            session.close()

    if error is None:
        np.testing.assert_allclose(outcome(), healthy(model)["y"] * 1.05, rtol=1e-6)
    else:
        with pytest.raises(EngineError) as caught:
            outcome()
        assert type(caught.value) is error


def test_every_kind_works_on_every_float_shape(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[N] v, float s, float[0,3] e) => (float[N] a, float b, float[0,3] c)
    { [v] a = Neg(v)\n [s] b = Neg(s)\n [e] c = Neg(e) }"""
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    feed = {"v": np.ones(3, np.float32), "s": np.array(2, np.float32), "e": np.zeros((0, 3), np.float32)}
    kinds = {"scale", "offset", "noise", "nondeterministic", "sign", "saturate", "nan", "off-by-one", "zero-tail",
             "permute", "stale"}  # fmt: skip
    for kind in sorted(kinds):
        for node, output, shape in (("v", "a", (3,)), ("s", "b", ()), ("e", "c", (0, 3))):
            assert run(tmp_path / "m.onnx", Fault(kind, node=node), feed)[output].shape == shape


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(UsageError) as caught:
        Fault("fast", node="x")
    assert all(kind.value in caught.value.cure for kind in FaultKind)


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, tensortriage_testing; print([m for m in ('onnx', 'onnxruntime') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.lengthy
def test_the_healthy_engine_conforms_and_a_faulty_one_does_not():
    assert len(check_engine_conformance(FaultyEngine()).passed) > 10
    with pytest.raises(AssertionError, match=r"model float64: output 'y' is \[4"):
        check_engine_conformance(FaultyEngine(), {"kind": "scale", "node": "add_s", "amount": "2"})


# --- kinds that depend on runs ---

MARKED = "a"


@pytest.fixture(scope="module")
def product(model, tmp_path_factory):
    """Return the model with the result of its MatMul as another output, and that result."""
    path = tmp_path_factory.mktemp("marked") / "m.onnx"
    mark_outputs(Model.load(model), [MARKED]).save(path)
    return path, healthy(path)[MARKED]


def test_warm_up_is_wrong_once(product):
    path, right = product
    session = type("Planted", (FaultyEngine,), {"fault": Fault("warm-up", node="mm")})().compile(path, {})
    runs = [session.run(X)[MARKED] for _ in range(3)]
    session.close()
    np.testing.assert_array_equal(runs[0], np.zeros_like(right))
    for later in runs[1:]:
        np.testing.assert_array_equal(later, right)


def test_a_fault_in_some_runs(model):
    session = FaultyEngine().compile(model, {"kind": "sign", "node": "mul", "run_chance": "0.5"})
    seen = {session.run(X)["y"].tobytes() for _ in range(64)}  # all alike with a chance of 2**-63
    session.close()
    assert len(seen) == 2
