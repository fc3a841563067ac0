"""Whatever ONNX Runtime's tools write of small networks is evaluated in float64, and is what ONNX Runtime computes."""

import numpy as np
import onnx
import pytest

from machine import exact_int8
from rewritten_networks import NETWORKS, distinct_rewritten, feed_of
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.onnxruntime import OnnxRuntimeEngine
from tensortriage.errors import BuildFailed, EngineError

pytestmark = pytest.mark.lengthy

FLOAT, HALF, STEPS = 1e-4, 2e-2, 5e-2
"""Relative errors: of sums in float32 (one network loses 3e-5 as it was exported), of a few layers in fp16, and of some
that round to 8 bits the other way."""
ONLY_ON_GPUS = ("NhwcConv",)
EXPECTED = {
    "bert": {"Attention", "SkipLayerNormalization", "BiasGelu", "QAttention", "MatMulNBits"},
    "digits_vit": {"Attention", "QAttention", "BiasGelu", "MatMulNBits", "com.microsoft.nchwc.Conv"},
    "pools and sizes": {f"com.microsoft.nchwc.{op}" for op in ("Conv", "MaxPool", "AveragePool", "Upsample")},
    "recurrent": {"DynamicQuantizeLSTM"},
    "quantized images": {"QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat"},
    "root mean squares": {"QuickGelu"},
}
"""Operators that some file of a network must have, so that the test is about them."""


@exact_int8
@pytest.mark.parametrize("name", NETWORKS)
def test_no_operator_is_without_arithmetic_or_type(name, tmp_path):
    wrong, seen, count = [], set(), 0
    whole = feed_of(NETWORKS[name]())
    for file, path in distinct_rewritten(name, tmp_path):
        model = onnx.load(path)
        feed = {
            value.name: whole[value.name] for value in model.graph.input
        }  # fused for another kind, some lose a mask
        ops = [node for node in model.graph.node if node.domain not in ("", "ai.onnx")]
        seen |= {node.op_type if node.domain == "com.microsoft" else f"{node.domain}.{node.op_type}" for node in ops}
        count += 1
        try:
            Float64Engine().compile(path, {"rounding": "results"})
            own = Float64Engine().compile(path, {}).run(feed)
        except (BuildFailed, EngineError) as error:
            wrong.append(f"{file}: {error}")
            continue
        if any(node.op_type in ONLY_ON_GPUS for node in ops):
            continue
        truth = OnnxRuntimeEngine().compile(path, {"optimization": "none"}).run(feed)
        allowed = HALF if "fp16" in file else STEPS if file.startswith(("Q", "dynamic")) or "dynamic" in file else FLOAT
        for output, array in truth.items():
            off = np.linalg.norm(own[output] - array) / np.linalg.norm(array)
            if not off < allowed:
                wrong.append(f"{file}: {output} is {off:.2g} off")
    assert count > 10
    assert not wrong
    assert seen >= EXPECTED.get(name, set())
