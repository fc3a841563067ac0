"""Feeds for a calibrator: representative data decide the scales of an INT8 engine, so they are the user's own."""

from pathlib import Path

from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.feeds.trial import feeds_that_run
from tensortriage_worker.shards import write_shard

SEPARATOR = "/"
"""Between the number of a feed and the name of its input; see `tensortriage_worker.tensorrt.calibration`."""


def with_calibration(spec: EngineSpec, model: Path, request: FeedRequest, folder: Path) -> EngineSpec:
    """Return an engine that is calibrated with feeds, if it is TensorRT, asked for int8, and has no scales.

    Args:
        spec: The engine.
        model: ONNX file; a model with quantizers brings its scales.
        request: The feeds.
        folder: Where to write them.
    """
    options = spec.options
    scaled = {"calibration_cache", "calibration_feeds", "load_engine"} & options.keys()
    if spec.name != "tensorrt" or options.get("precision") != "int8" or scaled:
        return spec
    from tensortriage.engines.tensorrt.build_inputs import is_quantized  # with all that prepares a model for TensorRT

    loaded = Model.load(model)
    if is_quantized(loaded):
        return spec
    path = folder / "calibration.safetensors"
    arrays = {
        f"{number}{SEPARATOR}{name}": array
        for number, feed in enumerate(feeds_that_run(request, loaded))
        for name, array in feed.tensors.items()
    }
    write_shard(path, arrays)
    return spec.with_options({**options, "calibration_feeds": str(path)})
