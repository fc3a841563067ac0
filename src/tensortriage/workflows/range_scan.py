"""What number formats cannot hold of a model: one run of the reference, and no engine to blame yet."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.runs.capture import capture
from tensortriage.runs.engine_specs import REFERENCE
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.ranges import FORMATS, RangeRow
from tensortriage.runs.ranges import range_scan as scan
from tensortriage.runs.workspace import Workspace
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MappedStore, ShardWriter

BATCH_BYTES = 1 << 30


def range_scan(
    model: Path,
    *,
    inputs: Sequence[str] = (),
    reference: str = REFERENCE,
    formats: Sequence[Precision] = FORMATS,
) -> tuple[RangeRow, ...]:
    """Run a model once on the reference and hold all its tensors against number formats.

    Args:
        model: ONNX file.
        inputs: Data files; the first feed counts. None for made-up data.
        reference: Spec of the engine taken as right.
        formats: Formats of interest.

    Returns:
        One row per tensor and constant, in topological order; see `tensortriage.runs.ranges`.

    Raises:
        TriageError: For bad input, or a reference that fails.
    """
    loaded = Model.load(model)
    feed = next(iter(feeds(FeedRequest(paths=tuple(inputs), most=1), loaded)))
    specs = value_specs(loaded, {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()})
    with tempfile.TemporaryDirectory(prefix="triage-ranges-") as name:
        workspace = Workspace(Path(name))
        try:
            with ShardWriter(Path(name) / "golden") as writer:
                for value, array in capture(
                    EngineSpec.parse(reference), loaded, feed, markable(loaded),
                    workspace=workspace, specs=specs, batch_bytes=BATCH_BYTES,
                ):  # fmt: skip
                    writer.write(value, np.asarray(array))
            return scan(loaded, MappedStore(Path(name) / "golden"), feed.tensors, formats=formats)
        finally:
            workspace.close()
