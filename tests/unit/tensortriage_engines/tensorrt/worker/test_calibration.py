"""Calibrators: fed with one feed after the other, or handed a cache."""

import types

import numpy as np
import pytest

from tensorrt_stand_in import Runtime
from tensortriage_engines.tensorrt.worker import calibration, memory
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.shards import write_shard


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
