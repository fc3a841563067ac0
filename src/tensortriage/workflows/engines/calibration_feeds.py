"""Feeds for a calibrator: representative data decide the scales of an INT8 engine, so they are the user's own."""

from pathlib import Path

from tensortriage.engines.capabilities import TakesFeeds
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.feeds.trial import feeds_that_run
from tensortriage_worker.shards import write_shard

SEPARATOR = "/"
"""Between the number of a feed and the name of its input."""


def with_calibration(spec: EngineSpec, model: Path, request: FeedRequest, folder: Path) -> EngineSpec:
    """Return an engine that is calibrated with feeds, if this build needs them.

    Args:
        spec: The engine.
        model: ONNX file.
        request: The feeds.
        folder: The folder to write them to.
    """
    engine = resolve(spec).engine
    option = engine.wants_feeds(spec.options, model) if isinstance(engine, TakesFeeds) else ""
    if not option:
        return spec
    path = folder / "calibration.safetensors"
    arrays = {
        f"{number}{SEPARATOR}{name}": array
        for number, feed in enumerate(feeds_that_run(request, Model.load(model)))
        for name, array in feed.tensors.items()
    }
    write_shard(path, arrays)
    return spec.with_options({**spec.options, option: str(path)})
