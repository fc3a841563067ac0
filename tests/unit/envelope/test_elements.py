"""How far scores may be off follows the target's format, whichever way that is evaluated."""

import numpy as np
import onnx
import pytest

from engine_scripts import engine_file
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.elements import score_radii
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.lab import Lab
from tensortriage.runs.questions.question import Question

SCORES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4,64] x, float[64,16] w) => (float[4,16] y) { y = MatMul(x, w) }"""


def shortened(array, bits):
    """Return float32 numbers rounded to so many of their 23 bits of fraction, halves up."""
    cut = 23 - bits
    return ((array.view(np.uint32) + np.uint32(1 << (cut - 1))) & np.uint32((1 << 32) - (1 << cut))).view(np.float32)


@pytest.mark.parametrize("trusts_float64", [True, False])
@pytest.mark.parametrize(("precision", "bits"), [("tf32", 10), ("bf16", 7)])
def test_scores_of_a_narrow_format_are_ties_there_and_not_in_fp32(tmp_path, precision, bits, trusts_float64):
    """TF32 keeps 10 bits of the fractions of operands; bf16 7, of operands here for an error that it surely makes."""
    onnx.save(onnx.parser.parse_model(SCORES), tmp_path / "m.onnx")
    file = engine_file("class Engine:\n    def compile(self, model, options):\n        pass\n")
    model, rng = Model.load(tmp_path / "m.onnx"), np.random.default_rng(3)
    fed = {"x": rng.standard_normal((4, 64), np.float32), "w": rng.standard_normal((64, 16), np.float32)}
    feed = Feed("feed", fed, Origin.REAL)
    exact, off = (
        np.float32(x.astype(np.float64) @ w.astype(np.float64))
        for x, w in (fed.values(), (shortened(each, bits) for each in fed.values()))
    )
    target = EngineSpec("script", {"file": str(file), "precision": precision})
    question = Question(model=model, feeds=[feed], reference=PLAIN, target=target, trusts_float64=trusts_float64)
    with Lab() as lab:
        radii = score_radii(
            Investigation.begin(question, lab=lab).setting(feed), {"y": exact}, specs=value_specs(model)
        )
    moved = np.abs(off - exact)
    assert np.any(moved > radii.fp32["y"])
    assert np.all(moved <= radii.target["y"]) == (trusts_float64 or precision == "bf16")  # fp32 alone emulates no TF32
