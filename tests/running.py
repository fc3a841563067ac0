"""Run models in ONNX Runtime the plainest way: one thread, no optimizations, all outputs by name."""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage.values.spec import ValueSpec


def run(model: Model, feed: Mapping[str, np.ndarray], *, optimization: str = "DISABLE_ALL") -> dict[str, np.ndarray]:
    """Return the outputs; what the model has no input for is left out of the feed."""
    session = build(model, optimization=optimization)
    wanted = {value.name for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, {k: v for k, v in feed.items() if k in wanted}), strict=True))


def build(model: Model, *, optimization: str = "DISABLE_ALL") -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_{optimization}")
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    message = ir.to_proto(model.ir).SerializeToString()
    return ort.InferenceSession(message, options, providers=["CPUExecutionProvider"])


def record(model: Model, feed: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, ValueSpec]]:
    """Return every value of a model, the feed included, and their specs."""
    golden = {**feed, **run(mark_outputs(model, markable(model)), feed)}
    return golden, {name: ValueSpec.of(name, array) for name, array in golden.items()}
