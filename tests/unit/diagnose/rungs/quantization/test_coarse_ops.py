"""A few ops that 8 bits leave too little of are to blame; a network that amplifies what each op rounds well is not.

Both lose 10 to 50 % of their outputs. Which is which follows from how the networks are made: in the one every matrix
multiplies what was rounded by two and a half, in the other one channel is sixty times as large as its neighbours.
"""

import dataclasses

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantFormat, quantize_dynamic, quantize_static

from diagnosing import ask
from machine import exact_int8
from tensortriage.engines.spec import PLAIN
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Saved

pytestmark = pytest.mark.slow
LAYERS, WIDTH = 8, 48


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self, feeds):
        self._left = iter(feeds)

    def get_next(self):
        return next(self._left, None)


def saved(path, inputs, outputs, body, weights):
    made = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float{inputs} x) => (float{outputs} y) {{ {body} }}'
    )
    for name, array in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    for node in made.graph.node:
        node.name = f"{node.output[0]}_op"
    onnx.save(made, path)


def amplifying(path, rng):
    weights = {f"w{i}": rng.standard_normal((WIDTH, WIDTH)) * 2.5 / np.sqrt(WIDTH) for i in range(LAYERS)}
    body = "t0 = Identity(x) " + " ".join(f"a{i} = MatMul(t{i}, w{i}) t{i + 1} = Tanh(a{i})" for i in range(LAYERS))
    saved(path, [16, WIDTH], [16, 6], f"{body} y = MatMul(t{LAYERS}, v)",
          weights | {"v": rng.standard_normal((WIDTH, 6)) / 7})  # fmt: skip
    return WIDTH


def with_a_large_channel(path, rng):
    weights, body = {"g": np.ones(32), "v": rng.standard_normal((32, 6)) * 0.3}, "n0 = Identity(x)"
    for i in range(4):
        weights |= {f"u{i}": rng.standard_normal((32, 64)) * 0.2, f"d{i}": rng.standard_normal((64, 32)) * 0.2}
        body += (
            f" b{i} = MatMul(n{i}, u{i}) h{i} = Relu(b{i}) p{i} = MatMul(h{i}, d{i}) s{i} = Add(p{i}, n{i})"
            f" n{i + 1} = LayerNormalization(s{i}, g)"
        )
    weights["u2"][:, 0] *= 60
    weights["d2"][0] /= 60
    saved(path, [16, 32], [16, 6], f"{body} y = MatMul(n4, v)", weights)
    return 32


def diagnosed(folder, make, way, seed):
    rng, path, file = np.random.default_rng(seed), folder / "model.onnx", folder / "file.onnx"
    size = make(path, rng)
    feeds = [{"x": rng.standard_normal((16, size)).astype(np.float32)} for _ in range(6)]
    if way == "dynamic":
        quantize_dynamic(path, file)
    else:
        quantize_static(path, file, Samples(feeds), quant_format=QuantFormat[way])
    np.savez(folder / "feed.npz", **feeds[0])
    return ask(folder, path, feeds[0], "onnxruntime:optimization=none", target_model=file)[0]


def compared(folder):
    """Return the exit codes of `run` on the same file, beside its network and against what that saved."""
    feed, kept = FeedRequest(paths=(str(folder / "feed.npz"),)), []
    asked = CompareRequest(model=folder / "model.onnx", targets=[PLAIN], feeding=feed)
    compare(asked, record=lambda *told: kept.append(told[2]))
    saved_outputs = Saved("golden", [dict(kept[0])])
    live = dataclasses.replace(asked, reference=PLAIN, target_model=folder / "file.onnx")
    golden = dataclasses.replace(asked, model=folder / "file.onnx", saved=[saved_outputs])
    return [compare(each).exit_code for each in (live, golden)]


@pytest.mark.parametrize(
    "way", ["dynamic", *(pytest.param(way, marks=pytest.mark.lengthy) for way in ("QDQ", "QOperator"))]
)
def test_ops_that_lose_much_of_their_own_results_are_to_blame(tmp_path, way):
    verdict = diagnosed(tmp_path, with_a_large_channel, way, 7)
    assert verdict.verdict == "quantization", verdict.summary
    named = [each.node.removesuffix("_quant") for each in verdict.culprits]
    assert named[0] == "b2_op"
    assert {*named} <= {"b2_op", "p2_op"}
    assert all(each.local_error > 0.1 for each in verdict.culprits)
    assert any(f"nodes_to_exclude={named}" in line for line in verdict.next)
    assert verdict.remedy is not None
    assert compared(tmp_path) == [1, 1]


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("dynamic", marks=exact_int8),
        *(pytest.param(way, marks=pytest.mark.lengthy) for way in ("QDQ", "QOperator")),
    ],
)
def test_healthy_rounding_of_a_network_that_amplifies_it_is_rounding(tmp_path, way):
    verdict = diagnosed(tmp_path, amplifying, way, 0)
    assert verdict.verdict == "rounding", verdict.summary
    assert "% of the signal" in verdict.summary
    assert compared(tmp_path) == [0, 0]
