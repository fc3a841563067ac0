"""The parser and the builder for real, without a GPU: TensorRT-RTX parses, checks types and builds plans on any CPU.

It cannot load or run what it builds there; running is proven by ``bench/gpu`` on a GPU.
"""

import importlib.util
import json
import os
import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from running_cli import triage
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed, EngineMissing, ModelError, UsageError
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import Precision
from tensortriage_engines.tensorrt.worker import library
from tensortriage_engines.tensorrt.worker.adapter import make_builder
from tensortriage_engines.tensorrt.worker.logs import LogMiner
from tensortriage_engines.tensorrt.worker.network import Parsed
from tensortriage_testing import models
from tensortriage_worker.adapter import AdapterError

NEEDED = ("tensorrt_rtx_bindings", "onnxruntime_ep_nv_tensorrt_rtx")
pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in NEEDED),
        reason="TensorRT-RTX is not installed: pip install 'tensortriage[rtx]' (Linux, x86-64)",
    ),
]
RTX = {"library": "tensorrt_rtx"}
MODELS = {
    "encoder": lambda: models.encoder(layers=1, width=16, heads=2, tokens=4, vocabulary=20),
    "conv": models.conv_net,
    "mlp": models.mlp,
}


@pytest.fixture(scope="module")
def engine():
    return create(EngineSpec("tensorrt"))


@pytest.fixture
def saved(tmp_path):
    def save(model: onnx.ModelProto, name: str = "model.onnx"):
        onnx.save(model, tmp_path / name)
        return tmp_path / name

    return save


def small(*nodes, inputs, outputs, opset=17, initializers=(), domains=()) -> onnx.ModelProto:
    def infos(tensors):
        return [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in tensors]

    graph = helper.make_graph(list(nodes), "g", infos(inputs), infos(outputs), list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def relu(shape=(2, 3), dtype=TensorProto.FLOAT) -> onnx.ModelProto:
    node = helper.make_node("Relu", ["x"], ["y"], name="act")
    return small(node, inputs=[("x", dtype, shape)], outputs=[("y", dtype, shape)])


def test_a_plan_is_built_and_written(engine, saved, tmp_path):
    info = engine.build_only(saved(relu()), {**RTX, "save_engine": str(tmp_path / "out" / "a.engine")})
    data = (tmp_path / "out" / "a.engine").read_bytes()
    assert len(data) == info["plan_bytes"]
    with pytest.raises(ModelError, match="TensorRT-RTX engine"):
        Model.load(tmp_path / "out" / "a.engine")
    assert not [path for path in (tmp_path / "out").iterdir() if path.name != "a.engine"]


def test_a_build_can_be_repeated_bit_by_bit(engine, saved):
    """TensorRT-RTX times nothing on a CPU, so nothing remains to chance."""
    path = saved(MODELS["mlp"]())
    first, again, other = (engine.build_only(path, {**RTX, **more}) for more in ({}, {}, {"precision": "fp16"}))
    assert first["plan_sha256"] == again["plan_sha256"] != other["plan_sha256"]


def test_without_a_device_running_is_refused(engine, saved):
    if engine.features(RTX)["device"]:
        pytest.skip("there is a GPU here")
    with pytest.raises(EngineMissing):
        engine.compile(saved(relu()), RTX)
    with pytest.raises(EngineMissing):
        engine.check(RTX)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"precision": "fp32"}, "--noTF32"),
        ({"opt_level": "1"}, "--builderOptimizationLevel=1"),
        ({"workspace": "64"}, "--memPoolSize=workspace:64"),
        ({"strict_nans": "true", "deterministic": "true"}, "--maxAuxStreams=0"),
        ({"refit": "true"}, "--refit"),
        ({"editable": "true", "record_tactics": "true"}, "--stronglyTyped"),
        ({"avg_timing": "3"}, "--avgTiming=3"),
    ],
)
def test_options_are_taken_and_told(engine, saved, options, expected):
    info = engine.build_only(saved(relu()), {**RTX, **options})
    assert expected in info["trtexec"]


@pytest.mark.parametrize(
    "options", [{"precision": "fp16", "typing": "weak"}, {"calibration_cache": __file__}, {"plugins": __file__}]
)
def test_what_this_release_lacks_is_refused_by_name(engine, saved, options):
    with pytest.raises((UsageError, EngineMissing)) as caught:
        engine.build_only(saved(relu()), {**RTX, **options})
    assert caught.value.slug in ("typing-unavailable", "tensorrt-feature-missing", "plugin-library")


def test_int8_without_quantizers_is_refused(engine, saved):
    with pytest.raises(UsageError, match="Q/DQ pairs"):
        engine.build_only(saved(relu()), {**RTX, "precision": "int8"})


def test_quantizers_are_built_as_they_are(engine, saved):
    scale, zero = numpy_helper.from_array(np.float32(0.1), "s"), numpy_helper.from_array(np.int8(0), "z")
    weight = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    nodes = []
    for name in ("x", "w"):
        nodes += [
            helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}q"], name=f"q_{name}"),
            helper.make_node("DequantizeLinear", [f"{name}q", "s", "z"], [f"{name}d"], name=f"d_{name}"),
        ]
    nodes.append(helper.make_node("Conv", ["xd", "wd"], ["y"], name="conv"))
    model = small(
        *nodes,
        inputs=[("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        outputs=[("y", TensorProto.FLOAT, (1, 4, 6, 6))],
        initializers=[scale, zero, weight],
    )
    assert engine.build_only(saved(model), {**RTX, "precision": "int8"})["plan_bytes"] > 0
    assert engine.build_only(saved(model), RTX)["precision"] == "mixed"


def test_profiles_bound_open_dimensions(engine, saved):
    path = saved(relu(("N", 3)))
    info = engine.build_only(path, {**RTX, "profile.x": "1x3:4x3:8x3"})
    assert info["profile"] == {"x": [[1, 3], [4, 3], [8, 3]]}
    assert "--minShapes=x:1x3 --optShapes=x:4x3 --maxShapes=x:8x3" in info["trtexec"]
    assert engine.build_only(path, RTX)["profile"] == {"x": [[1, 3]] * 3}


@pytest.mark.parametrize("text", ["1x4:1x4:1x4", "2x3:1x3", "1x3:2", "a"])
def test_a_profile_that_does_not_fit_is_refused(engine, saved, text):
    with pytest.raises((UsageError, BuildFailed)):
        engine.build_only(saved(relu(("N", 3))), {**RTX, "profile.x": text})


def test_mixed_types_are_found_when_parsing(engine, saved):
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], name="to_half", to=TensorProto.FLOAT16),
        helper.make_node("Add", ["h", "x"], ["y"], name="badadd"),
    ]
    path = saved(small(*nodes, inputs=[("x", TensorProto.FLOAT, (2,))], outputs=[("y", TensorProto.FLOAT, (2,))]))
    with pytest.raises(BuildFailed, match=r"badadd.*same input types.*Half and Float") as caught:
        engine.build_only(path, RTX)
    assert caught.value.message.startswith("TensorRT refused the model: node 'badadd' (Add)")


def parse(path):
    trt, miner = library.load(RTX), LogMiner()
    logger = library.make_logger(trt, miner)
    Parsed(trt, make_builder(trt, logger, miner), logger, strong=True).parse(path)


def test_the_parser_names_the_nodes_it_does_not_know(saved):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Hammer", ["a"], ["y"], name="odd", domain="my"),
    ]
    tensors = {"inputs": [("x", TensorProto.FLOAT, (2,))], "outputs": [("y", TensorProto.FLOAT, (2,))]}
    with pytest.raises(AdapterError, match="node 'odd'"):
        parse(saved(small(*nodes, **tensors, domains=["my"])))


@pytest.mark.parametrize("observe", ["unfused", "debug"])
def test_inner_tensors_are_marked_for_the_listener(engine, saved, observe):
    path = saved(MODELS["mlp"]())
    plain = engine.build_only(path, RTX)
    marked = engine.build_only(path, {**RTX, "observe": observe})
    assert (plain["observation"], marked["observation"]) == ("", observe)
    assert engine.observing({**RTX}) == {**RTX, "observe": "unfused"}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
def test_converted_models_have_the_types_that_strong_typing_wants(saved, tmp_path, name, precision):
    """Any set of kept nodes must give a model that a strongly typed parser takes; five sets drawn at random."""
    model = Model.load(saved(MODELS[name]()))
    nodes = [node.name for node in model.graph.nodes]
    rng = random.Random(f"{name} {precision}")
    for count in (0, 1, len(nodes) // 3, len(nodes) // 2, len(nodes) - 1):
        kept = rng.sample(nodes, count)
        typed = convert(model, precision, specs=value_specs(model), kept_nodes=kept)
        parse(typed.save(tmp_path / "typed.onnx"))


def test_kept_nodes_reach_the_builder(engine, saved):
    path = saved(MODELS["mlp"]())
    node = Model.load(path).graph.nodes[0].name
    info = engine.build_only(path, {**RTX, "precision": "fp16", "kept": node})
    assert info["trtexec"].startswith(f"triage convert {path} --precision fp16 --keep-nodes {node} -o model.fp16.onnx")
    with pytest.raises(UsageError, match="no node 'stranger'"):
        engine.build_only(path, {**RTX, "precision": "fp16", "kept": "stranger"})


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"precision": "mixed", "kept": "{node}"}, "kept nodes in a model that is built as it is typed"),
        ({"precision": "fp16", "fallback": "bf16"}, "layers in bf16 with fp16"),
        ({"precision": "fp32", "fallback": "fp16+int8"}, "layers in fp16 or int8 with fp32"),
    ],
)
def test_what_only_weak_typing_could_do_is_refused(engine, saved, options, what):
    """Both were left out without a word, and an engine of other precisions was judged as the one asked for."""
    path = saved(MODELS["mlp"]())
    node = Model.load(path).graph.nodes[0].name
    with pytest.raises(UsageError, match=what) as caught:
        engine.build_only(path, {**RTX, **{key: text.format(node=node) for key, text in options.items()}})
    assert caught.value.slug == "typing-unavailable"


def test_external_data_beyond_two_gigabytes_are_parsed_by_path(tmp_path):
    """The weights are holes of a sparse file: the parser maps them and reads nothing."""
    rows, columns, count = 1 << 14, 1 << 13, 5
    size = rows * columns * 4
    assert size * count > 2 << 30
    weights = [
        TensorProto(name=f"W{i}", data_type=TensorProto.FLOAT, dims=[columns, rows][:: 1 - 2 * (i % 2)])
        for i in range(count)
    ]
    for index, weight in enumerate(weights):
        weight.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "w.bin"), ("offset", str(index * size)), ("length", str(size))):
            weight.external_data.add(key=key, value=value)
    with open(tmp_path / "w.bin", "wb") as file:
        os.truncate(file.fileno(), size * count)
    values = ["x", *(f"v{i}" for i in range(1, count)), "y"]
    nodes = [helper.make_node("MatMul", [values[i], f"W{i}"], [values[i + 1]], name=f"m{i}") for i in range(count)]
    model = small(
        *nodes,
        inputs=[("x", TensorProto.FLOAT, (1, columns))],
        outputs=[("y", TensorProto.FLOAT, (1, rows if count % 2 else columns))],
        initializers=weights,
    )
    (tmp_path / "large.onnx").write_bytes(model.SerializeToString())
    parse(tmp_path / "large.onnx")


def test_an_engine_is_written_by_convert(saved, tmp_path):
    words = ["convert", str(saved(relu())), "--convert-to", "trt", "--fp16", "--json", "-o", str(tmp_path / "a.engine")]
    done = triage(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["format"], told["precision"]) == ("tensortriage.engine/1", "fp16")
    assert (tmp_path / "a.engine").stat().st_size == told["bytes"]
