"""The engine ``float64`` as a whole: what it refuses, keeps in float64, releases, and makes of control flow."""

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import helper

from engines.onnx_models import F, parsed, save, value
from models import parse
from tensortriage.engines.capabilities import ReportsPrecision
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.errors import BuildFailed, RunFailed, UsageError
from tensortriage.values.dtype import DType


def compiled(path):
    return Float64Engine().compile(path, {})


def run(path, **feed):
    session = compiled(path)
    outputs = session.run(feed)
    session.close()
    return outputs


def floats(*values):
    return np.array(values, np.float32)


def test_results_are_float64_and_exact(tmp_path):
    session = compiled(parsed(tmp_path / "m.onnx", "g (float[2] x, float[2] z) => (float[2] y) { y = Div(x, z) }"))
    y = session.run({"x": floats(1, 2), "z": floats(3, 7)})["y"]
    assert y.tolist() == [1 / 3, 2 / 7]  # Python's own float64 division
    assert session.outputs[0].dtype is DType.DOUBLE
    assert session.inputs[0].dtype is DType.FLOAT


def test_casts_between_wide_types_do_not_round(tmp_path):
    text = """g (float[1] x) => (float[1] y) {
        half = Cast<to = 10>(x)
        brain = Cast<to = 16>(half)
        back = Cast<to = 1>(brain)
        like = CastLike(back, half)
        y = Identity(like)
    }"""
    assert run(parsed(tmp_path / "m.onnx", text), x=floats(1.0001))["y"].item() == float(np.float32(1.0001))


def test_half_precision_weights_compute_in_float64(tmp_path):
    half = DType.FLOAT16.value
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        [value("x", half, [2])],
        [value("y", half, [2])],
        {"w": np.array([0.1, 3], np.float16)},
    )
    y = run(path, x=np.array([0.1, 60000], np.float16))["y"]
    assert y.tolist() == [float(np.float16(0.1)) ** 2, 180000.0]  # 60000 is a float16, 180000 would overflow


def test_narrow_formats_do_round(tmp_path):
    text = "g (float[3] x) => (float[3] y) { n = Cast<to = 17>(x)\n y = Cast<to = 1>(n) }"
    # float8e4m3: 3 bits of mantissa, so 17 is a tie between 16 and 18; beyond 448 it saturates by default.
    assert run(parsed(tmp_path / "m.onnx", text), x=floats(17, 18.9, 1000))["y"].tolist() == [16, 18, 448]


def test_outputs_do_not_share_memory_with_the_feed(tmp_path):
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Reshape", ["x", "s"], ["y"]), helper.make_node("Expand", ["x", "t"], ["z"])],
        [value("x", DType.DOUBLE.value, [4]), value("i", DType.INT64.value, [2])],
        [value("y", DType.DOUBLE.value), value("z", DType.DOUBLE.value), value("i", DType.INT64.value, [2])],
        {"s": np.array([2, 2]), "t": np.array([3, 4])},
    )
    feed = {"x": np.arange(4.0), "i": np.arange(2)}
    outputs = run(path, **feed)
    for array in outputs.values():
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert not any(np.shares_memory(array, given) for given in feed.values())
    assert outputs["z"].shape == (3, 4)


def test_values_are_released_after_their_last_use(tmp_path):
    count, size = 40, 1 << 17
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    marked = [value(f"v{i + 1}", F, ["n"]) for i in range(count)]
    session = compiled(save(tmp_path / "m.onnx", nodes, [value("v0", F, ["n"])], marked))
    feed = {"v0": np.ones(size, np.float32)}
    tracemalloc.start()
    names = [name for name, array in session.stream(feed) if array[0] in (1.0, -1.0)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert names == [f"v{i + 1}" for i in range(count)]
    assert peak < 6 * size * 8  # of 40 values, two in use, one with the caller


def test_nodes_that_no_output_needs_do_not_run(tmp_path):
    text = "g (float[n] x, int64[1] i) => (float[n] y) { bad = Gather(x, i)\n [use] y = Neg(x) }"
    session = compiled(parsed(tmp_path / "m.onnx", text))
    assert session.run({"x": floats(1), "i": np.array([9])})["y"].tolist() == [-1]
    assert [region.nodes for region in session.plan().regions] == [("use",)]


def test_failing_node_is_named(tmp_path):
    session = compiled(
        parsed(tmp_path / "m.onnx", "g (float[n] x, int64[k] i) => (float[k] y) { [pick] y = Gather(x, i) }")
    )
    with pytest.raises(RunFailed, match=r"node 'pick' \(Gather\): an index is outside \[-3, 3\)"):
        session.run({"x": floats(1, 2, 3), "i": np.array([3])})


@pytest.mark.parametrize(
    ("node", "opset", "complaint"),
    [
        ("RandomNormal<shape = [2]>()", 21, "RandomNormal has no float64 arithmetic here"),
        ("BitCast<to = 6>(x)", 26, "BitCast has no float64 arithmetic here"),
        ("Relu(x)", 6, "operator set 6"),
    ],
)
def test_what_cannot_be_computed_is_refused(tmp_path, node, opset, complaint):
    path = parsed(tmp_path / "m.onnx", f"g (float[2] x) => (float[2] y) {{ y = {node} }}", opset=opset)
    with pytest.raises(BuildFailed, match=complaint):
        compiled(path)


@pytest.mark.parametrize("size", [-5, -(2**63), 2**62, 10**12])
def test_declared_sizes_that_no_array_has_are_not_believed(tmp_path, size):
    nodes = [helper.make_node("Neg", ["x"], ["y"], name="neg")]
    path = save(tmp_path / "m.onnx", nodes, [value("x", F, [2])], [value("y", F, [size])])
    assert compiled(path).run({"x": floats(1, 2)})["y"].tolist() == [-1, -2]


def test_foreign_domain_is_refused(tmp_path):
    nodes = [helper.make_node("Inverse", ["x"], ["y"], domain="com.microsoft", name="fast")]
    path = save(tmp_path / "m.onnx", nodes, [value("x", F, [2])], [value("y", F, [2])], domains=["com.microsoft"])
    with pytest.raises(BuildFailed, match=r"node 'fast': com.microsoft.Inverse has no float64") as caught:
        compiled(path)
    assert "onnxruntime" in caught.value.cure


def test_sequence_outputs_are_refused(tmp_path):
    output = helper.make_tensor_sequence_value_info("y", F, None)
    path = save(
        tmp_path / "m.onnx", [helper.make_node("SequenceConstruct", ["x"], ["y"])], [value("x", F, [2])], [output]
    )
    with pytest.raises(BuildFailed) as caught:
        compiled(path)
    assert caught.value.slug == "value-not-a-tensor"


def test_sequences_inside_a_model_work(tmp_path):
    text = """g (float[4] x) => (float[4] y, int64 n) {
        parts = SplitToSequence<axis = 0>(x, two)
        first = SequenceAt(parts, zero)
        longer = SequenceInsert(parts, first)
        shorter = SequenceErase(longer, zero)
        y = ConcatFromSequence<axis = 0>(shorter)
        n = SequenceLength(longer)
    }"""
    text = text.replace("{\n        parts", "<int64 two = {2}, int64 zero = {0}> {\n        parts")
    outputs = run(parsed(tmp_path / "m.onnx", text), x=floats(1, 2, 3, 1 / 3))
    assert outputs["y"].tolist() == [3, float(np.float32(1 / 3)), 1, 2]
    assert outputs["n"].item() == 3


def test_options_and_precision(tmp_path):
    engine = Float64Engine()
    assert isinstance(engine, ReportsPrecision)
    assert engine.precision({}) == "fp64"
    with pytest.raises(UsageError):
        engine.compile(tmp_path / "m.onnx", {"precision": "fp32"})


def test_what_it_says_of_itself():
    engine = Float64Engine()
    assert engine.availability().usable
    assert engine.hardware({}) == "cpu"
    assert not engine.builds_vary({})


def test_norms_are_folded_where_that_is_asked_for(tmp_path):
    text = """g (float[1,1,3] x) => (float[1,1,3] y)
    <float[1,1,1] w = {2}, float[1] s = {3}, float[1] z = {0}, float[1] v = {1}> {
        [conv] c = Conv(x, w)
        [norm] y = BatchNormalization<epsilon = 0.0>(c, s, z, z, v)
    }"""
    path, x = parsed(tmp_path / "m.onnx", text), floats(1, 2, 3).reshape(1, 1, 3)
    for options, steps in (({}, 2), ({"norms": "apart"}, 2), ({"norms": "folded"}, 1)):
        session = Float64Engine().compile(path, options)
        assert session.run({"x": x})["y"].ravel().tolist() == [6, 12, 18]
        assert len(session.plan().regions) == steps


def test_operators_of_the_onnx_package_are_a_second_opinion(tmp_path):
    path = parsed(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { y = Sqrt(x) }")
    found = Float64Engine().compile(path, {"kernels": "onnx"}).run({"x": floats(4, 9)})["y"]
    assert found.tolist() == [2, 3]
    with pytest.raises(UsageError):
        Float64Engine().compile(path, {"kernels": "other"})


def test_a_closed_session_computes_and_tells_nothing(tmp_path):
    session = compiled(parsed(tmp_path / "m.onnx", "g (float[1] x) => (float[1] y) { y = Neg(x) }"))
    session.close()
    for ask in (lambda: session.run({"x": floats(1)}), session.plan):
        with pytest.raises(RunFailed) as caught:
            ask()
        assert caught.value.slug == "session-closed"


def test_a_function_that_calls_itself_is_refused(tmp_path):
    endless = helper.make_function(
        "mine", "Endless", ["x"], ["y"], [helper.make_node("Endless", ["x"], ["y"], domain="mine")],
        [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)],
    )  # fmt: skip
    nodes = [helper.make_node("Endless", ["x"], ["y"], domain="mine", name="call")]
    path = save(
        tmp_path / "m.onnx", nodes, [value("x", F, [1])], [value("y", F, [1])], functions=[endless], domains=["mine"]
    )
    with pytest.raises(BuildFailed, match="calls itself"):
        compiled(path)


# Control flow: expected values are the same loops in Python's float64.


def test_if_inside_if_captures_outer_values(tmp_path):
    text = """g (bool c, bool d, float[1] x) => (float[1] y) <float[1] third = {3}> {
        scaled = Div(x, third)
        y = If(c) <
            then_branch = a () => (float[1] p) {
                p = If(d) <
                    then_branch = b () => (float[1] q) { q = Neg(scaled) },
                    else_branch = e () => (float[1] r) { r = Add(scaled, x) }
                >
            },
            else_branch = f () => (float[1] s) { s = Identity(x) }
        >
    }"""
    path = parsed(tmp_path / "m.onnx", text)
    for c, d, expected in [(True, True, -1 / 3), (True, False, 1 / 3 + 1), (False, True, 1.0)]:
        assert run(path, c=np.array(c), d=np.array(d), x=floats(1))["y"].item() == expected


LOOP = """g (int64 m, bool go, float[1] x) => (float[1] last, float[k,1] all) <float[1] tenth = {0.1}> {
    last, all = Loop(m, go, x) <
        body = b (int64 i, bool c, float[1] v) => (bool keep, float[1] next, float[1] row) <float[1] ten = {10}> {
            next = Add(v, tenth)
            row = Mul(next, next)
            keep = Less(next, ten)
        }
    >
}"""


@pytest.mark.parametrize(("limit", "start", "count"), [(5, 0.0, 5), (0, 0.0, 0), (500, 9.0, 10)])
def test_loop(tmp_path, limit, start, count):
    outputs = run(parsed(tmp_path / "m.onnx", LOOP), m=np.array(limit), go=np.array(True), x=floats(start))
    v, rows = start, []
    for _ in range(count):
        v += float(np.float32(0.1))
        rows.append([v * v])
    assert outputs["last"].item() == v
    assert outputs["all"].shape == (count, 1)
    assert outputs["all"].tolist() == rows
    assert outputs["all"].dtype == np.float64


def test_scan_with_directions_and_axes(tmp_path):
    text = """g (float[1] s, float[2,3] x) => (float[1] total, float[1,3] sums) {
        total, sums = Scan <
            num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
            scan_output_axes = [1], scan_output_directions = [1],
            body = b (float[1] acc, float[2] column) => (float[1] next, float[1] copy) <int64[1] axes = {0}> {
                part = ReduceSum<keepdims = 1>(column, axes)
                next = Add(acc, part)
                copy = Identity(next)
            }
        > (s, x)
    }"""
    x = np.array([[1, 2, 3], [10, 20, 30]], np.float32)
    outputs = run(parsed(tmp_path / "m.onnx", text), s=floats(0.5), x=x)
    # Columns from the last to the first: 33.5, 55.5, 66.5; written back to front.
    assert outputs["total"].tolist() == [66.5]
    assert outputs["sums"].tolist() == [[66.5, 55.5, 33.5]]


def test_functions_with_attribute_references_and_defaults(tmp_path):
    function = helper.make_function(
        "mine",
        "Leak",
        ["x"],
        ["y"],
        [helper.make_node("LeakyRelu", ["x"], ["y"])],
        [helper.make_opsetid("", 21)],
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )
    function.node[0].attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    nodes = [
        helper.make_node("Leak", ["x"], ["a"], domain="mine", name="given", slope=0.25),
        helper.make_node("Leak", ["x"], ["b"], domain="mine", name="default"),
    ]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [value("x", F, [1])],
        [value("a", F, [1]), value("b", F, [1])],
        functions=[function],
        domains=["mine"],
    )
    outputs = run(path, x=floats(-8))
    assert (outputs["a"].item(), outputs["b"].item()) == (-2.0, -4.0)


def test_meaning_of_old_operator_sets(tmp_path):
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    text = "g (float[1,2,4] x) => (float[1,2,4] y) { y = Softmax(x) }"
    old = run(parsed(tmp_path / "old.onnx", text, opset=11), x=x)["y"]
    new = run(parsed(tmp_path / "new.onnx", text, opset=13), x=x)["y"]
    # Until 12 axis 1 and all after it count as one, from 13 on the last axis alone.
    assert old.sum() == pytest.approx(1.0, abs=1e-15)
    assert new.sum(axis=-1).ravel() == pytest.approx([1.0, 1.0], abs=1e-15)


def test_a_body_need_not_say_the_type_of_its_outputs(tmp_path):
    path = parsed(
        tmp_path / "m.onnx",
        """g (bool c, float[2] x) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                       else_branch = e () => (float[2] b) { b = Abs(x) }>
        }""",
    )
    model = onnx.load(path)
    for attribute in model.graph.node[0].attribute:
        attribute.g.output[0].type.tensor_type.elem_type = onnx.TensorProto.UNDEFINED
    onnx.save(model, path)
    assert run(path, c=np.array(True), x=floats(1, -2))["y"].tolist() == [-1, 2]  # negated


@pytest.mark.parametrize(("opset", "first"), [(11, 13.5), (16, 9.0)])
def test_regions_are_half_a_pixel_farther_before_opset_16(tmp_path, opset, first):
    """The first sample of the region from 1 to 3 lies at 1.5 in both axes, and from opset 16 on at 1, of x + 8 y."""
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    text = """g (float[1,1,8,8] x, float[1,4] box, int64[1] at) => (float[1,1,2,2] y) {
        y = RoiAlign<output_height=2, output_width=2, sampling_ratio=1>(x, box, at) }"""
    path = parsed(tmp_path / "m.onnx", text, opset=opset)
    made = run(path, x=x, box=np.float32([[1, 1, 3, 3]]), at=np.zeros(1, np.int64))["y"]
    assert made[0, 0, 0, 0] == pytest.approx(first)


def test_results_of_undefined_type_are_not_rounded():
    """So are the states of an Attention that is given none, once its function is inlined; one step is passed on."""
    one = parse("""<ir_version: 11, opset_import: ["": 23]> g (float[1,1,4] q) => (float[1,1,4] y) {
        p = Abs(q) o, k, v, s = Attention<q_num_heads=2, kv_num_heads=2>(p, p, p) y = Neg(o) }""")
    session = Float64Engine().compile_model(one, {"rounding": "results", "functions": "cpu"})
    made = session.run({"q": floats(1, 2, 3, 4).reshape(1, 1, 4)})["y"]
    assert made.ravel() == pytest.approx([-1, -2, -3, -4], rel=1e-5)
