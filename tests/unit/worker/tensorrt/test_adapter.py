"""What is asked of a network and of a builder: owners of layers, kept precisions, tactic sources, calibration."""

import enum
import types
from pathlib import Path

import numpy as np
import pytest

from tensorrt_stand_in import Runtime
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.shards import write_shard
from tensortriage_worker.tensorrt import adapter, calibration, memory
from tensortriage_worker.tensorrt.config import (
    add_profile,
    allow_types,
    configure,
    profiles,
    set_precision,
    tactic_sources,
)
from tensortriage_worker.tensorrt.network import constrain, constrain_as_typed, owners

DataType = enum.Enum("DataType", ["FLOAT", "HALF", "INT32"])
LayerType = enum.Enum("LayerType", ["CONVOLUTION", "CONSTANT", "SHUFFLE", "SHAPE", "ELEMENTWISE"])
TRT = types.SimpleNamespace(
    __version__="0",
    DataType=DataType,
    BuilderFlag=types.SimpleNamespace(FP16="FP16", INT8="INT8", TF32="TF32"),
    TacticSource=enum.IntEnum("TacticSource", ["CUBLAS", "CUBLAS_LT", "CUDNN"], start=0),
)


class Layer:
    """A layer of one output."""

    def __init__(self, name, kind, value, dtype="FLOAT", metadata="", shape_tensor=False):
        self.name, self.type, self.metadata, self.num_outputs = name, LayerType[kind], metadata, 1
        self._output = types.SimpleNamespace(name=value, dtype=DataType[dtype], is_shape_tensor=shape_tensor)
        self.precision, self.output_type = None, None

    def get_output(self, index):
        return self._output

    def set_output_type(self, index, dtype):
        self.output_type = dtype


def network(*layers: Layer):
    return types.SimpleNamespace(num_layers=len(layers), get_layer=lambda index: layers[index])


def old():
    """Return a network as 8.5 makes it: no metadata, several layers a node, the last one making the node's value."""
    return [
        Layer("w", "CONSTANT", "(Unnamed Layer* 0) [Constant]_output"),
        Layer("conv", "CONVOLUTION", "a"),
        Layer("bias", "CONSTANT", "(Unnamed Layer* 2) [Constant]_output"),
        Layer("(Unnamed Layer* 3) [Shuffle]", "SHUFFLE", "broadcast"),
        Layer("add", "ELEMENTWISE", "b"),
        Layer("shape", "SHAPE", "s", "INT32", shape_tensor=True),
    ]


VALUES = {"a": "conv", "b": "add", "s": "shape"}


def test_layers_belong_to_the_node_whose_value_they_lead_to():
    assert [(layer.name, node) for layer, node in owners(network(*old()), VALUES)] == [
        ("w", ""), ("conv", "conv"), ("bias", ""), ("(Unnamed Layer* 3) [Shuffle]", "add"), ("add", "add"),
        ("shape", "shape"),
    ]  # fmt: skip


def test_metadata_say_more_than_values():
    layers = [Layer("x", "SHUFFLE", "t", metadata="[ONNX Layer: soft]"), Layer("y", "ELEMENTWISE", "b")]
    assert [node for _, node in owners(network(*layers), VALUES)] == ["soft", "add"]


def test_kept_nodes_are_constrained_with_all_their_layers_and_nothing_else():
    layers = old()
    assert constrain(TRT, network(*layers), ["add", "shape"], VALUES) == ["add"]  # shapes are no floats
    constrained = {layer.name for layer in layers if layer.precision is DataType.FLOAT}
    assert constrained == {"(Unnamed Layer* 3) [Shuffle]", "add"}
    assert all((layer.output_type is None) == (layer.precision is None) for layer in layers)


def test_a_typed_network_is_constrained_as_it_is_typed():
    layers = [Layer("a", "CONVOLUTION", "a", "HALF"), Layer("b", "ELEMENTWISE", "b"), Layer("c", "SHAPE", "s", "INT32")]
    constrain_as_typed(TRT, network(*layers))
    assert [layer.precision for layer in layers] == [DataType.HALF, DataType.FLOAT, None]


class Config:
    def __init__(self):
        self.flags, self.cleared = [], []

    def set_flag(self, flag):
        self.flags.append(flag)

    def clear_flag(self, flag):
        self.cleared.append(flag)


@pytest.mark.parametrize(
    ("options", "flags", "cleared"),
    [
        ({"precision": "fp32"}, [], ["TF32"]),
        ({"precision": "tf32"}, [], []),
        ({"precision": "fp16"}, ["FP16"], []),
        ({"precision": "int8", "fallback": "fp16"}, ["INT8", "FP16"], []),
    ],
)
def test_weak_formats_are_flags(options, flags, cleared):
    config = Config()
    set_precision(TRT, config, options, strong=False)
    assert (config.flags, config.cleared) == (flags, cleared)
    strong = Config()
    set_precision(TRT, strong, options, strong=True)
    assert (strong.flags, strong.cleared) == ([], cleared)


def test_a_format_that_the_release_lacks_is_refused_by_name():
    with pytest.raises(AdapterError, match="weakly typed fp8") as caught:
        set_precision(TRT, Config(), {"precision": "fp8"}, strong=False)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.MISSING, "tensorrt-feature-missing")


def test_types_of_a_network_are_allowed_where_strong_typing_is_lacking():
    config = Config()
    allow_types(TRT, config, ["FLOAT", "HALF", "INT32", "INT8"])
    assert config.flags == ["FP16", "INT8"]


@pytest.mark.parametrize(
    ("words", "mask"),
    [("-CUDNN", 0b011), ("-CUDNN+-CUBLAS", 0b010), ("CUBLAS", 0b001), ("cublas+cublas_lt", 0b011), ("", 0b111)],
)
def test_tactic_sources(words, mask):
    assert tactic_sources(TRT, 0b111, words) == mask


def test_an_unknown_tactic_source_lists_the_known_ones():
    with pytest.raises(AdapterError) as caught:
        tactic_sources(TRT, 0b111, "-CUFFT")
    assert "CUBLAS, CUBLAS_LT, CUDNN" in caught.value.cure


def test_shape_ranges_of_options():
    assert profiles({"profile.x": "1x3:2x3:4x3", "profile.s": "7", "device": "0"}) == {
        "x": ((1, 3), (2, 3), (4, 3)),
        "s": ((7,), (7,), (7,)),
    }


@pytest.mark.parametrize(("kinds", "profiles"), [(["CONVOLUTION"], 0), (["CONVOLUTION", "NMS"], 1)])
def test_shapes_that_depend_on_data_need_a_profile_even_where_no_input_is_open(kinds, profiles):
    """8.5.3 on a GPU: "Profile kOPT values are not self-consistent. Assertion profile != nullptr failed"."""
    added = []
    builder = types.SimpleNamespace(create_optimization_profile=object)
    config = types.SimpleNamespace(add_optimization_profile=lambda profile: added.append(profile) or 0)
    tensor = types.SimpleNamespace(name="x", shape=(1, 3), is_shape_tensor=False)
    made = [types.SimpleNamespace(type=types.SimpleNamespace(name=kind)) for kind in kinds]
    net = types.SimpleNamespace(
        num_inputs=1, get_input=lambda index: tensor, num_layers=len(made), get_layer=lambda index: made[index]
    )
    assert add_profile(TRT, builder, config, net, {}) == {}
    assert len(added) == profiles


def calibrated(tmp_path, options, feeds=()):
    """Attach a calibrator and return it with what the configuration was given."""
    if feeds:
        arrays = {f"{number}/{name}": array for number, feed in enumerate(feeds) for name, array in feed.items()}
        write_shard(tmp_path / "feeds.safetensors", arrays)
        options = {**options, "calibration_feeds": str(tmp_path / "feeds.safetensors")}
    trt = types.SimpleNamespace(
        IInt8EntropyCalibrator2=type("Base", (), {"__init__": lambda self: None}), __version__="8"
    )
    config = types.SimpleNamespace(int8_calibrator=None)
    tensor = types.SimpleNamespace(name="x", dtype=types.SimpleNamespace(name="FLOAT"))
    net = types.SimpleNamespace(num_inputs=1, get_input=lambda index: tensor)
    calibrator = calibration.attach(trt, None, config, net, options, {})
    assert config.int8_calibrator is calibrator
    return calibrator


def test_a_calibrator_is_fed_with_one_feed_after_the_other(tmp_path, monkeypatch):
    runtime = Runtime()
    monkeypatch.setattr(memory, "_runtime", lambda: runtime)
    feeds = [{"x": np.full((1, 2), value, np.float32)} for value in (1, 2)]
    calibrator = calibrated(tmp_path, {}, feeds)
    assert (calibrator.get_batch_size(), calibrator.read_calibration_cache()) == (1, None)
    for feed in feeds:
        (address,) = calibrator.get_batch(["x"])
        assert bytes(runtime._blocks[address])[:8] == feed["x"].tobytes()
    assert calibrator.get_batch(["x"]) is None
    calibrator.write_calibration_cache(b"scales")
    assert calibrator.written == b"scales"


def test_a_calibrator_stays_on_the_device_of_the_build(tmp_path, monkeypatch):
    """Whoever sets another device sets it for the builder of the same thread too."""
    runtime = Runtime(devices=2)
    monkeypatch.setattr(memory, "_runtime", lambda: runtime)
    memory.Cuda(1)
    calibrated(tmp_path, {"device": "1"}, [{"x": np.ones((1, 2), np.float32)}])
    assert runtime.device == 1


def test_feeds_of_another_shape_are_no_calibration(tmp_path, monkeypatch):
    """TensorRT reads a batch by the shape of its profile: of a smaller feed it would read what lies behind."""
    monkeypatch.setattr(memory, "_runtime", Runtime)
    feeds = [{"x": np.ones((1, size), np.float32)} for size in (4, 4, 2)]
    with pytest.raises(AdapterError, match=r"'x' is \[1, 4\] in the first, \[1, 2\] in feed 3") as caught:
        calibrated(tmp_path, {}, feeds)
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "calibration-shapes")


def test_a_cache_is_handed_over_as_it_is(tmp_path):
    (tmp_path / "cache").write_bytes(b"TRT-8503-EntropyCalibration2\nx: 3c010a14\n")
    calibrator = calibrated(tmp_path, {"calibration_cache": str(tmp_path / "cache")})
    assert calibrator.read_calibration_cache() == (tmp_path / "cache").read_bytes()
    assert calibrator.get_batch(["x"]) is None


def test_a_release_without_calibrators_says_so():
    with pytest.raises(AdapterError, match="calibration") as caught:
        calibration.attach(types.SimpleNamespace(__version__="11"), None, None, None, {}, {})
    assert caught.value.kind is AdapterFailure.MISSING


class Remembering:
    """A builder configuration that remembers."""

    def __init__(self):
        self.flags, self.features, self.engine_capability = [], {}, None

    def set_flag(self, flag):
        self.flags.append(flag)

    def set_preview_feature(self, feature, enable):
        self.features[feature] = enable


def test_an_engine_without_weights_is_not_run(monkeypatch):
    """It may be built; what it would compute is not the model's."""
    monkeypatch.setattr(memory, "_runtime", Runtime)
    monkeypatch.setattr(adapter, "load", lambda options: types.SimpleNamespace(ILogger=object, __version__="10"))
    with pytest.raises(AdapterError, match="without its weights") as caught:
        adapter.compile(Path("m.onnx"), {"builder_flags": "direct_io+strip_plan"})
    assert (caught.value.kind, caught.value.slug) == (AdapterFailure.USAGE, "engine-stripped")


def test_builder_flags_settings_and_features_by_name():
    feature = enum.Enum("PreviewFeature", ["A_0805", "B_0806"])
    trt = types.SimpleNamespace(
        __version__="9", ProfilingVerbosity=types.SimpleNamespace(DETAILED="d"), PreviewFeature=feature,
        BuilderFlag=types.SimpleNamespace(STRIP_PLAN="strip", TF32="tf32"),
        EngineCapability=types.SimpleNamespace(SAFETY="safety"),
    )  # fmt: skip
    builder = types.SimpleNamespace(create_builder_config=Remembering)
    settings = {
        "builder_settings": "engine_capability:safety",
        "preview_features": "a_0805",
    }
    config = configure(trt, builder, {"builder_flags": "strip_plan", **settings}, strong=True)
    assert config.flags == ["strip"]
    assert config.engine_capability == "safety"
    assert config.features == {feature.A_0805: True, feature.B_0806: False}
    assert set(configure(trt, builder, {"preview_features": "none"}, strong=True).features.values()) == {False}
    with pytest.raises(AdapterError, match="DIRECT_IO"):
        configure(trt, builder, {"builder_flags": "DIRECT_IO"}, strong=True)
