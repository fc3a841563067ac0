"""The values of a model that number formats cannot hold: one run of the reference, and no engine to blame yet."""

from collections.abc import Sequence
from pathlib import Path

from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.runs.analyses.ranges import FORMATS, RangeRow, RangeScan
from tensortriage.runs.engine_specs import DEFAULT_REFERENCE
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.feeds.trial import feeds_that_run
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision


def range_scan(
    model: Path,
    *,
    inputs: Sequence[str] = (),
    reference: str = DEFAULT_REFERENCE,
    formats: Sequence[Precision] = FORMATS,
) -> tuple[RangeRow, ...]:
    """Run a model once on the reference and compare all its tensors with number formats.

    Args:
        model: ONNX file.
        inputs: Data files; the first feed counts. None for made-up data.
        reference: Spec of the engine assumed to be right.
        formats: Formats of interest.

    Returns:
        One row per tensor and constant, in topological order; see `tensortriage.runs.analyses.ranges`.

    Raises:
        TriageError: For bad input, or a reference that fails.
    """
    loaded = Model.load(model)
    feed = feeds_that_run(FeedRequest(paths=tuple(inputs), most=1), loaded)[0]
    scan = RangeScan(loaded, feed.tensors, formats=formats)
    with Lab() as lab:
        for value, array in lab.stream(EngineSpec.parse(reference), loaded, feed, markable(loaded)):
            scan.take(value, array)
    return scan.rows()
