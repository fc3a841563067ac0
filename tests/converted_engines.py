"""What tests of engines behind a converter share: inner values of the bundled model, beside ONNX Runtime's."""

from contextlib import closing
from pathlib import Path

import numpy as np

from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs

EXAMPLES = Path(__file__).parents[1] / "examples"
MODEL = EXAMPLES / "digits_cnn.onnx"
IMAGES = np.load(EXAMPLES / "digits.npz")["image"]


def check_inner_values(engine, options, folder, *, fewest):
    """Hold the inner values that an engine shows in fp32 against ONNX Runtime's; return node names: all, and planned.

    Args:
        engine: The engine.
        options: Its options.
        folder: Where a model may be written.
        fewest: Number of values that it must show.
    """
    loaded = Model.load(MODEL)
    values = [value for node in loaded.graph.nodes for value in node.outputs]
    marked = mark_outputs(loaded, values).save(folder / "marked.onnx")
    right = OnnxRuntimeEngine().compile(marked, {"optimization": "none"})
    session = engine.compile(MODEL, engine.observing(options))
    with closing(right), closing(session):
        expected = right.run({"image": IMAGES[:3]})
        found = dict(session.captured({"image": IMAGES[:3]}, values))
        plan = session.plan()
    assert len(found) >= fewest
    for name, array in found.items():  # both compute in float32; the largest value is about 6
        assert array.shape == expected[name].shape, name
        np.testing.assert_allclose(array, expected[name], atol=1e-4, err_msg=name)
    return {node.name for node in loaded.graph.nodes}, {name for region in plan.regions for name in region.nodes}
