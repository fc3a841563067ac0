import gc
import subprocess
import sys
import tempfile
import threading

import ml_dtypes
import numpy as np
import psutil
import pytest
from onnx import helper

from engines.onnx_models import F, conv_net, parsed, save, value
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.errors import BuildFailed, EngineOutOfMemory, RunFailed, UsageError
from tensortriage.values.dtype import DType

NO_IDENTITY = {"COMPLEX64", "COMPLEX128", "FLOAT8E8M0"}
FEED = {"x": np.random.default_rng(1).standard_normal((1, 16, 8, 8)).astype(np.float32)}


def compiled(path, **options):
    return OnnxRuntimeEngine().compile(path, options)


@pytest.fixture
def net(tmp_path):
    return conv_net(tmp_path / "net.onnx")


def test_an_input_without_a_rank_takes_any(tmp_path):
    free = helper.make_tensor_value_info("x", F, None)
    path = save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [free], [value("y", F, None)])
    session = compiled(path)
    assert session.inputs[0].shape is None
    for shape in ((), (3,), (2, 3)):
        assert session.run({"x": np.ones(shape, np.float32)})["y"].shape == shape


# ONNX Runtime 1.31 has no complex types, and no kernel that takes and gives float8_e8m0.
@pytest.mark.parametrize("dtype", [d for d in DType if d.bits >= 8 and d.name not in NO_IDENTITY])
def test_every_whole_byte_type_passes_through(tmp_path, dtype):
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Identity", ["x"], ["y"])],
        [value("x", dtype.value, ["n"])],
        [value("y", dtype.value, ["n"])],
    )
    session = compiled(path)
    for count in (0, 3):
        x = np.array([1, 0, 2][:count], np.float32).astype(dtype.numpy)
        y = session.run({"x": x})["y"]
        assert y.dtype == x.dtype
        assert y.tobytes() == x.tobytes()
        assert not np.shares_memory(x, y)
    assert session.inputs[0].dtype is dtype
    assert session.outputs[0].shape == ("n",)
    session.close()


@pytest.mark.parametrize("dtype", [DType.INT4, DType.UINT4, DType.INT2, DType.UINT2])
def test_sub_byte_types_are_packed_and_unpacked(tmp_path, dtype):
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=F),
        helper.make_node("Mul", ["f", "two"], ["y"]),
        helper.make_node("Cast", ["f"], ["z"], to=dtype.value),
    ]
    opset = 25 if dtype.bits == 2 else 21
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [value("x", dtype.value, [5])],
        [value("y", F, [5]), value("z", dtype.value, [5])],
        {"two": np.array(2, np.float32)},
        opset=opset,
    )
    low = -2 if dtype.name.startswith("INT") else 0
    x = np.array([low, 1, 0, low + 1, 1], np.int8).astype(dtype.numpy)
    session = compiled(path)
    outputs = session.run({"x": x})
    session.close()
    assert outputs["y"].tolist() == (x.astype(np.float32) * 2).tolist()
    assert outputs["z"].dtype == dtype.numpy
    assert outputs["z"].tobytes() == x.tobytes()


def test_strings_beside_bfloat16_inputs(tmp_path):
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Cast", ["b"], ["f"], to=F)],
        [value("s", DType.STRING.value, [2]), value("b", DType.BFLOAT16.value, [1])],
        [value("t", DType.STRING.value, [2]), value("f", F, [1])],
    )
    session = compiled(path)
    outputs = session.run({"s": np.array(["a", "ü"]), "b": np.array([1.5], ml_dtypes.bfloat16)})
    session.close()
    assert outputs["t"].tolist() == ["a", "ü"]
    assert outputs["f"].tolist() == [1.5]


def test_outputs_outlive_the_session_and_own_their_memory(tmp_path):
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("Cast", ["x"], ["b"], to=DType.BFLOAT16.value)],
        [value("x", F, ["n"])],
        [value("x", F, ["n"]), value("w", F, ["n"]), value("y", F, ["n"]), value("b", DType.BFLOAT16.value, ["n"])],
        {"w": np.full(4096, 7, np.float32)},
    )
    x = np.ones(4096, np.float32)
    session = compiled(path)
    outputs = session.run({"x": x})
    session.close()
    x[:] = 5
    del session
    gc.collect()
    rubbish = [np.full(4096, 3, np.float32) for _ in range(50)]
    assert [float(outputs[name].astype(np.float64).sum()) for name in ("x", "w", "y", "b")] == [
        4096.0,
        4096.0 * 7,
        4096.0 * 8,
        4096.0,
    ]
    assert len(rubbish) == 50


@pytest.mark.parametrize(
    ("op_type", "kind"), [("SequenceConstruct", "seq(tensor(float))"), ("Optional", "optional(tensor(float))")]
)
def test_outputs_that_are_no_tensors_are_refused(tmp_path, op_type, kind):
    make = {
        "SequenceConstruct": helper.make_tensor_sequence_value_info("y", F, None),
        "Optional": helper.make_value_info("y", helper.make_optional_type_proto(helper.make_tensor_type_proto(F, [2]))),
    }
    path = save(tmp_path / "m.onnx", [helper.make_node(op_type, ["x"], ["y"])], [value("x", F, [2])], [make[op_type]])
    with pytest.raises(BuildFailed) as caught:
        compiled(path)
    assert caught.value.slug == "value-not-a-tensor"
    assert kind in caught.value.message


def test_reason_of_a_refusal_is_the_engines_own(tmp_path):
    path = parsed(tmp_path / "m.onnx", "g (float[4] x) => (int64[4] y) { [bad] y = Relu(x) }")
    with pytest.raises(BuildFailed) as caught:
        compiled(path)
    assert caught.value.message == (
        "ONNX Runtime refused the model: Type Error: Type (tensor(int64)) of output arg (y) of node (bad) does not "
        "match expected type (tensor(float))."
    )


def test_kernel_failure_is_a_failed_run(tmp_path):
    path = parsed(tmp_path / "m.onnx", "g (float[n] x, int64[k] i) => (float[k] y) { [pick] y = Gather(x, i) }")
    session = compiled(path)
    with pytest.raises(RunFailed, match="indices element out of data bounds") as caught:
        session.run({"x": np.zeros(3, np.float32), "i": np.array([7])})
    assert "onnxruntime_src" not in caught.value.message
    assert session.run({"x": np.ones(3, np.float32), "i": np.array([2])})["y"].tolist() == [1]
    session.close()


def test_failed_allocation_is_out_of_memory(tmp_path):
    path = parsed(tmp_path / "m.onnx", "g (float[1] x, int64[1] s) => (float[n] y) { y = Expand(x, s) }")
    session = compiled(path)
    with pytest.raises(EngineOutOfMemory):
        session.run({"x": np.zeros(1, np.float32), "s": np.array([1 << 46])})
    session.close()


def test_nothing_is_written_to_the_terminal(tmp_path):
    path = parsed(tmp_path / "m.onnx", "g (float[n] x, int64[k] i) => (float[k] y) { y = Gather(x, i) }")
    code = (
        "import sys, numpy as np\nfrom pathlib import Path\n"
        "from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine\n"
        "from tensortriage.errors import RunFailed\n"
        "session = OnnxRuntimeEngine().compile(Path(sys.argv[1]), {})\n"
        "try: session.run({'x': np.zeros(3, np.float32), 'i': np.array([7])})\nexcept RunFailed: sys.exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


@pytest.mark.slow
def test_memory_of_released_outputs_is_given_back(tmp_path):
    count, size = 64, 1 << 20
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    path = save(
        tmp_path / "m.onnx", nodes, [value("v0", F, ["n"])], [value(f"v{i + 1}", F, ["n"]) for i in range(count)]
    )
    session = compiled(path, optimization="none")
    process = psutil.Process()
    session.run({"v0": np.zeros(1, np.float32)})
    before = process.memory_info().rss
    outputs = session.run({"v0": np.ones(size, np.float32)})
    held = process.memory_info().rss - before
    del outputs
    session.close()
    kept = process.memory_info().rss - before
    assert held > count * size * 4 * 0.9
    assert kept < held / 4


def test_runs_in_several_threads(net):
    session = compiled(net)
    expected = session.run(FEED)["y"]
    found = []
    threads = [threading.Thread(target=lambda: found.append(session.run(FEED)["y"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.close()
    assert len(found) == 4
    assert all(np.array_equal(y, expected) for y in found)


def regions(session):
    found = {region.nodes: region for region in session.plan().regions if region.nodes}
    session.close()
    return found


def test_plan_without_optimization_has_one_region_per_node(net):
    found = regions(compiled(net, optimization="none"))
    names = ["conv1", "bn1", "relu1", "pool1", "conv2", "add", "relu2", "gap", "flat", "mm", "addb"]
    assert list(found) == [(name,) for name in names]
    assert {region.precision for region in found.values()} == {"float32"}
    assert found[("mm",)].kind == "MatMul"


def test_plan_shows_what_was_fused(net):
    found = regions(compiled(net))
    assert ("conv1", "bn1", "relu1") in found
    assert ("conv2", "add", "relu2") in found
    assert found[("mm", "addb")].kind == "Gemm"
    nodes = [name for group in found for name in group]
    assert len(nodes) == len(set(nodes)) == 11


def test_disabled_optimizers_stay_out_of_the_plan(net):
    found = regions(compiled(net, disabled_optimizers="MatMulAddFusion+ConvBNFusion"))
    assert {("mm",), ("addb",)} <= set(found)


def test_plan_leaves_out_folded_constants(tmp_path):
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [fold] a = Exp(w)\n [keep] y = Add(x, a) }"
    assert set(regions(compiled(parsed(tmp_path / "m.onnx", text)))) == {("keep",)}


def test_plan_is_none_when_the_model_is_gone(net):
    session = compiled(net)
    content = net.read_bytes()
    net.write_bytes(content)
    assert session.plan() is not None
    net.unlink()
    with pytest.raises(BuildFailed):
        session.plan()
    session.close()


def test_half_precision_is_converted_and_cleaned_up(net, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    full, half = compiled(net), compiled(net, precision="fp16")
    assert len(set(tmp_path.iterdir()) - before) == 1
    exact, rounded = full.run(FEED)["y"], half.run(FEED)["y"]
    full.close()
    assert rounded.dtype == np.float32
    error = np.abs(rounded - exact).max() / np.abs(exact).max()
    assert 1e-6 < error < 1e-2  # float16 keeps 11 bits, float32 differs from itself by less than 1e-6
    named = {name for group in regions(half) for name in group}
    assert {"conv1", "mm", "addb"} <= named
    assert set(tmp_path.iterdir()) == before


def test_refused_conversion_leaves_no_files_and_names_the_way_out(net, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    with pytest.raises(BuildFailed) as caught:
        compiled(net, precision="bf16")
    assert "emulate:precision=bf16" in caught.value.cure
    assert set(tmp_path.iterdir()) == before


def test_option_that_is_no_library(net):
    with pytest.raises(BuildFailed, match="Failed to load library"):
        compiled(net, custom_ops="/no/such/library.so")


def test_unknown_level(net):
    with pytest.raises(UsageError, match="optimization=most"):
        compiled(net, optimization="most")


def test_every_option_at_once_still_runs(net):
    session = compiled(
        net,
        optimization="extended",
        threads="1",
        inter_threads="2",
        deterministic="true",
        providers="cpu",
        disabled_optimizers="ConvActivationFusion",
        **{"config.session.disable_prepacking": "1"},
    )
    plain = compiled(net, optimization="none")
    difference = np.abs(session.run(FEED)["y"] - plain.run(FEED)["y"]).max()
    session.close()
    plain.close()
    assert difference < 1e-4


@pytest.mark.parametrize(("options", "spinning"), [({}, "0"), ({"config.session.intra_op.allow_spinning": "1"}, "1")])
def test_idle_threads_sleep_unless_they_are_asked_to_spin(net, options, spinning):
    session = compiled(net, **options)
    settings = session._session.get_session_options()
    session.close()
    assert settings.get_session_config_entry("session.intra_op.allow_spinning") == spinning


def test_availability_names_version_and_device():
    found = OnnxRuntimeEngine().availability()
    assert found.usable
    assert found.version
    assert "CPU" in found.device
