"""One build and one run of an exploded model give the local error of every op, on engines that optimize as well."""

import numpy as np
import onnx_ir as ir
import pytest

import models
import running
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineMissing
from tensortriage.model.cutting.explode import explode
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage_testing import models as networks

pytestmark = pytest.mark.lengthy

DYNAMIC = """
    g (float[N, 6] x, int64[2] i) => (float[K, 3] y, float[M, 6] z) {
        [shape] s = Shape(x)
        [zero] zero = Constant <value = int64 {0}> ()
        [rows] r = Gather(s, zero)
        [two] two = Constant <value = int64[1] {2}> ()
        [double] d = Mul(r, two)
        [three] three = Constant <value = int64[1] {3}> ()
        [target] t = Concat <axis = 0> (d, three)
        [reshape] y = Reshape(x, t)
        [next] j = Add(i, i)
        [pick] z = Gather(x, j)
    }"""


def local_errors(text, model, feed, folder):
    """Return the error of every op relative to the root mean square of its golden value."""
    golden, specs = running.record(model, feed)
    shapes = {name: golden[name] for name in model.graph.shape_like if name in golden}
    exploded = explode(model, specs=value_specs(model, specs), shape_values=shapes)
    spec = EngineSpec.parse(text)
    engine = create(spec)
    if not engine.availability().usable:
        pytest.skip(engine.availability().reason)
    try:
        session = engine.compile(exploded.model.save(folder / "exploded.onnx"), spec.options)
    except EngineMissing as missing:
        pytest.skip(str(missing))
    try:
        outputs = session.run({name: golden[value] for name, value in exploded.feeds.items()})
    finally:
        session.close()
    assert set(outputs) == set(exploded.outputs)
    errors = {}
    for name, array in outputs.items():
        expected = golden[name].astype(np.float64)
        scale = np.sqrt(np.mean(expected**2)) or 1.0
        errors[name] = float(np.sqrt(np.mean((np.asarray(array, np.float64) - expected) ** 2)) / scale)
    return errors


@pytest.mark.parametrize(
    ("engine", "largest"),
    [
        ("onnxruntime:optimization=none", 0.0),
        ("onnxruntime", 1e-5),
        ("openvino:precision=fp32", 1e-5),
        # Half a unit in the last place of bfloat16 is 2**-9; operands and the result are rounded.
        ("openvino:precision=bf16", 4 * 2**-9),
    ],
)
def test_every_op_of_an_encoder_and_of_a_model_that_computes_shapes(engine, largest, tmp_path):
    message = networks.encoder(layers=2, tokens=16, seed=5)
    model = Model.from_ir(ir.from_proto(message))
    errors = local_errors(engine, model, networks.feed_for(message, seed=1), tmp_path)
    assert len(errors) > 40
    assert max(errors.values()) <= largest
    dynamic = models.parse(DYNAMIC)
    feed = {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6), "i": np.array([0, 0])}
    errors = local_errors(engine, dynamic, feed, tmp_path)
    assert set(errors) == {"s", "r", "d", "t", "y", "j", "z"}
    assert max(errors.values()) <= largest
