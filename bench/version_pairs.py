"""Two versions, one question: pairs of wheels between which a bug was mended, by the words of those who mended it.

    python bench/version_pairs.py [--only NAME]

Each case is the smallest model that the issue or pull request speaks of, with an operator or two around it. `diagnose
--target OLD --against NEW` must call OLD the one outside the envelope, and name the operator that the fix names. Old
wheels come from `triage engines install onnxruntime==1.24.1` and `openvino==2024.0.0`; cases whose environment is not
there are left out.
"""

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tensortriage.workflows.engines.environments import environments

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
)


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
        verdict = answered(pair, made[pair.old])
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


def answered(pair: Pair, old: str) -> dict:
    """Return the verdict of `triage diagnose --target OLD --against NEW`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = parser.parse_model(pair.text)
        for node in model.graph.node:
            node.name = node.output[0]
        model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in pair.constants.items())
        onnx.checker.check_model(model)
        onnx.save(model, folder / "model.onnx")
        np.savez(folder / "feed.npz", **pair.feed)
        precision = ["precision=fp32"] if pair.new == "openvino" else []
        spec, _, rest = old.partition(":")
        words = [sys.executable, "-m", "tensortriage", "diagnose", str(folder / "model.onnx")]
        words += ["--inputs", str(folder / "feed.npz"), "--case", str(folder / "case")]
        words += ["--target", f"{spec}:{','.join([*precision, rest])}", "--against", ":".join([pair.new, *precision])]

        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if not (folder / "case" / "verdict.json").is_file():
            raise SystemExit(done.stderr)
        return json.loads((folder / "case" / "verdict.json").read_text())


if __name__ == "__main__":
    main()
