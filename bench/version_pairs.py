"""Two versions, one question: pairs of wheels between which a bug was mended, by the words of those who mended it.

    python bench/version_pairs.py [--only NAME]

Each case is the smallest model that the issue or pull request speaks of, with an operator or two around it. `diagnose
--target OLD --against NEW` must call OLD the one outside the envelope, and name the operator that the fix names. Old
wheels come from `triage engines install onnxruntime==1.24.1` and `openvino==2024.0.0`; cases whose environment is not
there are left out. Then pairs of versions that agree, on networks that both run right: nothing is to be said.
"""

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tensortriage.testing.models import conv_net, encoder, feed_for, mlp
from tensortriage_engines.install.environments import environments

RANDOM = np.random.default_rng(0)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A bug that one version has and another has not."""

    name: str
    source: str
    """Who says so."""
    old: str
    new: str
    named: tuple[str, ...]
    """Operators that the fix is about."""
    text: str
    feed: dict[str, np.ndarray]
    constants: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


def images(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def head(opset: int) -> str:
    return f'<ir_version: 8, opset_import: ["": {opset}]>'


PAIRS = (
    Pair(
        "pads of an average",
        "microsoft/onnxruntime#27375, in the notes of 1.26: incorrect pad indices in AveragePool count_include_pad",
        "onnxruntime-1.24.1",
        "onnxruntime",
        ("AveragePool",),
        head(19)
        + """g (float[1,8,9,9] x) => (float[1,4,9,9] y) {
            c = Conv(x, w)
            p = AveragePool<kernel_shape = [2, 2], pads = [0, 0, 1, 1], count_include_pad = 1>(c)
            y = Relu(p) }""",
        {"x": images(1, 8, 9, 9)},
        {"w": images(4, 8, 1, 1)},
    ),
    Pair(
        "last window of an average",
        "microsoft/onnxruntime#29629: AvgPool with ceil_mode and count_include_pad, opset 7 to 18",
        "onnxruntime-1.24.1",
        "onnxruntime",
        ("AveragePool",),
        head(17)
        + """g (float[1,8,10,10] x) => (float[1,4,4,4] y) {
            c = Conv(x, w)
            p = AveragePool<kernel_shape = [3, 3], strides = [3, 3], ceil_mode = 1, count_include_pad = 1>(c)
            y = Relu(p) }""",
        {"x": images(1, 8, 10, 10)},
        {"w": images(4, 8, 1, 1)},
    ),
    Pair(
        "sum and shift",
        "openvinotoolkit/openvino#23616: wrong result for ReduceSum with Add",
        "openvino-2024.0.0",
        "openvino",
        ("ReduceSum", "Add"),
        head(17)
        + """g (float[1,1536,4] x) => (float[1,1536] y) {
            axes = Constant<value_ints = [-1]>()
            m = Mul(x, w)
            s = ReduceSum<keepdims = 0>(m, axes)
            y = Add(s, b) }""",
        {"x": images(1, 1536, 4)},
        {"w": RANDOM.random((1536, 4), np.float32), "b": RANDOM.random(1536, np.float32)},
    ),
    Pair(
        "window that starts on the pad",
        "openvinotoolkit/openvino#36714: windows of ceil_mode that would start in the pad are ignored",
        "openvino-2024.0.0",
        "openvino",
        ("AveragePool",),
        head(17)
        + """g (float[1,4,2,2] x) => (float[1,4,h,w] y) {
            p = AveragePool<kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1,
                            count_include_pad = 1>(x)
            y = Relu(p) }""",
        {"x": np.abs(images(1, 4, 2, 2))},
    ),
    Pair(
        "indices from the end",
        "openvinotoolkit/openvino#30800: GatherElements on the CPU supports negative indices",
        "openvino-2024.0.0",
        "openvino",
        ("GatherElements",),
        head(17)
        + """g (float[3,6] x, int64[2,6] at) => (float[2,6] y) {
            s = Mul(x, x)
            p = GatherElements<axis = 0>(s, at)
            y = Tanh(p) }""",
        {"x": images(3, 6), "at": RANDOM.integers(-3, 3, (2, 6))},
    ),
    Pair(
        "axes of a norm",
        "openvinotoolkit/openvino#29499: ReduceL1 of opset 18",
        "openvino-2024.0.0",
        "openvino",
        ("ReduceL1",),
        head(18)
        + """g (float[3,4,5] x) => (float[3,4] y) {
            axes = Constant<value_ints = [2]>()
            s = Tanh(x)
            y = ReduceL1<keepdims = 0>(s, axes) }""",
        {"x": images(3, 4, 5)},
    ),
    Pair(
        "cap of scores and mask",
        "microsoft/onnxruntime#28379: the CPU's Attention added the mask before softcap",
        "onnxruntime-1.24.1",
        "onnxruntime",
        ("Attention",),
        head(23)
        + """g (float[1,2,4,8] q, float[1,2,6,8] k, float[1,2,6,8] v, float[4,6] mask) => (float[1,2,4,8] y) {
            s = Tanh(q)
            a = Attention<softcap = 2.0>(s, k, v, mask)
            y = Relu(a) }""",
        {
            "q": images(1, 2, 4, 8),
            "k": images(1, 2, 6, 8),
            "v": images(1, 2, 6, 8),
            "mask": np.where(RANDOM.random((4, 6)) < 0.3, -5, 0).astype(np.float32),
        },
    ),
    Pair(
        "cache of a decoder",
        "microsoft/onnxruntime#28958: is_causal with nonpad_kv_seqlen was aligned top-left",
        "onnxruntime-1.24.1",
        "onnxruntime",
        ("Attention",),
        head(24)
        + """g (float[1,2,3,8] q, float[1,2,8,8] k, float[1,2,8,8] v, int64[1] length) => (float[1,2,3,8] y) {
            s = Tanh(q)
            a = Attention<is_causal = 1>(s, k, v, , , , length)
            y = Relu(a) }""",
        {"q": images(1, 2, 3, 8), "k": images(1, 2, 8, 8), "v": images(1, 2, 8, 8), "length": np.array([7])},
    ),
)
HEALTHY = (
    ("onnxruntime-1.17.3", "onnxruntime", "conv"),
    ("onnxruntime-1.24.1", "onnxruntime", "encoder"),
    ("openvino-2024.0.0", "openvino", "encoder"),
    ("openvino-2024.0.0", "openvino", "mlp"),
    ("ncnn-1.0.20250503", "ncnn", "conv"),
    ("mnn-3.0.0", "mnn", "mlp"),
    ("tvm-0.26.0", "tvm", "encoder"),
    ("iree-3.3.0", "iree", "conv"),
    ("litert-1.4.0", "litert", "conv"),
)
"""Networks that both versions of an engine run right."""
NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "conv": lambda: conv_net(batch=1, blocks=2),
    "encoder": lambda: encoder(layers=2, width=32, heads=2, tokens=8, batch=1),
    "mlp": mlp,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="", help="part of a name")
    only = arguments.parse_args().only
    made = {environment.name: environment.target for environment in environments()}
    for pair in PAIRS:
        if only not in pair.name:
            continue
        if pair.old not in made:
            print(f"{pair.name}: left out, no environment {pair.old}")
            continue
        model = parser.parse_model(pair.text)
        for node in model.graph.node:
            node.name = node.output[0]
        model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in pair.constants.items())
        onnx.checker.check_model(model)
        verdict = answered(model, pair.feed, made[pair.old], pair.new)
        steps = [step for step in verdict["steps"] if "two targets" in step["question"]]
        culprits = tuple(dict.fromkeys(culprit["op_type"] for culprit in verdict["culprits"]))
        blamed = pair.old in verdict["summary"].partition("outside the envelope of the model")[2]
        first = f"({pair.named[0]} '" in verdict["summary"].partition("diverge first")[2]
        print(f"{pair.name} ({pair.source})")
        print(f"  the old version outside the envelope: {blamed}; first region that differs: {first}")
        named = set(pair.named) <= set(culprits)
        print(f"  {verdict['verdict']}: {' + '.join(culprits)}; all that the fix names: {named}")
        for text in (verdict["summary"], *(f"{step['question']} {step['answer']}" for step in steps)):
            print(f"  {text}")
    for old, new, name in HEALTHY:
        if only not in f"healthy {old} {name}":
            continue
        if old not in made:
            print(f"healthy {old}: left out, it is not there")
            continue
        model = NETWORKS[name]()
        verdict = answered(model, feed_for(model, batch=1), made[old], new)
        print(f"healthy {old} and {new} on {name}: {verdict['verdict']}: {verdict['summary']}", flush=True)


def answered(model: onnx.ModelProto, feed: Mapping[str, np.ndarray], old: str, new: str) -> dict[str, Any]:
    """Return the verdict of `triage diagnose --target OLD --against NEW`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(model, folder / "model.onnx")
        np.savez(folder / "feed.npz", **feed)
        precision = ["precision=fp32"] if new == "openvino" else []
        spec, _, rest = old.partition(":")
        words = [sys.executable, "-m", "tensortriage", "diagnose", str(folder / "model.onnx")]
        words += ["--inputs", str(folder / "feed.npz"), "--case", str(folder / "case")]
        words += ["--target", f"{spec}:{','.join([*precision, rest])}", "--against", ":".join([new, *precision])]

        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if not (folder / "case" / "verdict.json").is_file():
            return {"verdict": "none", "summary": done.stderr.strip(), "steps": [], "culprits": []}
        return json.loads((folder / "case" / "verdict.json").read_text())


if __name__ == "__main__":
    main()
