"""A model that OpenVINO refuses since it does not know ranks: what it builds, computed alike, is the remedy."""

import numpy as np
import onnxruntime
import pytest

from diagnosing import ask
from tensortriage.diagnose.state.verdict import VerdictKind

BRANCHES = """
    s = If <then_branch = yes () => (float[a,b,8] t) {{ t = Identity(x) }},
            else_branch = no () => (float[a,1,b,8] e) {{ e = Unsqueeze(x, one) }}> ({condition})
    c = Conv<kernel_shape=[3]>(s, w)
    y = Relu(c)
"""
OF_THE_SIZE = "shape = Shape(x) width = Gather(shape, two) small = Less(width, ten)"
HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[n,4,m] x{more}) => (float[n,3,k] y)'
KERNEL = ",".join(f"{each:.3f}" for each in np.linspace(-0.5, 0.5, 36))
WEIGHTS = f"<float[3,4,3] w = {{{KERNEL}}}, int64 two = {{2}}, int64 ten = {{10}}, int64[1] one = {{1}}>"


@pytest.mark.parametrize(
    ("more", "before", "condition", "remedy", "words"),
    [
        ("", OF_THE_SIZE, "small", "fixed-sizes", "x [1, 4, 8]"),
        (", bool short", "", "short", "branches", "1 If"),
    ],
)
def test_a_file_that_is_built_is_written_for_it(tmp_path, more, before, condition, remedy, words):
    text = f"{HEAD.format(more=more)} {WEIGHTS} {{ {before} {BRANCHES.format(condition=condition)} }}"
    feed = {"x": np.random.default_rng(5).standard_normal((1, 4, 8), np.float32)}
    if more:
        feed["short"] = np.asarray(True)
    verdict, *_ = ask(tmp_path, text, feed, "openvino:precision=fp32", fix=tmp_path / "fixed.onnx")
    assert verdict.kind is VerdictKind.BUILD_FAILED
    assert verdict.remedy.kind == remedy
    assert words in verdict.remedy.summary
    sessions = [onnxruntime.InferenceSession(tmp_path / name) for name in ("model.onnx", "fixed.onnx")]
    wanted, given = (
        session.run(None, {each.name: feed[each.name] for each in session.get_inputs()})[0] for session in sessions
    )
    np.testing.assert_array_equal(given, wanted)  # the same ops on the same numbers
