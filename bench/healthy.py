"""Does `triage diagnose` leave healthy engines alone? Healthy models on every engine here, and every alarm it raises.

    python bench/healthy.py
    python bench/healthy.py --only encoder digits --targets emulate:precision=bf16
    python bench/healthy.py --model minilm.onnx --inputs minilm.npz

Prints one line per model and target (verdict, figures, seconds) and the share of false alarms. The verdict of a healthy
engine is `match`, or `rounding` where the format is narrow; `range-overflow` is right where the format really cannot
hold a value, and `engine-crash` where bare OpenVINO dies of the model; both are told apart independently of the tool.
"""

import argparse
import dataclasses
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from networks.files import EXAMPLES, LIGHT, dressed, image_for
from onnx import numpy_helper

from tensortriage.errors import TriageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_testing import conv_net, encoder, feed_for, mlp, residual_dag, save_model

TARGETS = (
    "onnxruntime",
    "onnxruntime:optimization=layout",
    "onnxruntime:optimization=extended",
    "onnxruntime:optimization=basic",
    "onnxruntime:precision=fp16",
    "openvino:precision=fp32",
    "openvino:precision=bf16",
    "emulate:precision=fp16",
    "emulate:precision=bf16",
    "emulate:precision=fp8e4m3",
    "emulate:precision=fp8e5m2",
    "float64",
)
HEALTHY = ("match", "rounding")
ABSENT = ("error[precision-unsupported]", "error[engine-missing]")
"""What a target that this machine does not have ends with; it is not counted."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """A healthy model and the file of its feed."""

    name: str
    model: Path
    feed: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="parts of model names")
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--model", action="append", default=[], type=Path, help="another healthy model")
    parser.add_argument("--inputs", action="append", default=[], type=Path, help="its feed, in the same order")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    count = alarms = explained = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = [Subject(m.stem, m, i) for m, i in zip(arguments.model, arguments.inputs, strict=True)]
        for subject in given or subjects(folder, arguments.seeds):
            if arguments.only and not any(word in subject.name for word in arguments.only):
                continue
            for target in arguments.targets:
                verdict, note, seconds = ask(subject, target, folder / "cases" / subject.name)
                if verdict in ABSENT:
                    print(f"      {subject.name:18} {target:34} {note}", flush=True)
                    continue
                good = verdict in HEALTHY
                count, alarms = count + 1, alarms + (not good)
                explained += verdict == "range-overflow" and overflows(subject, target)
                explained += verdict == "engine-crash" and kills_openvino(subject)
                print(f"{'ok   ' if good else 'ALARM'} {subject.name:18} {target:34} {verdict:20} {seconds:6.1f} s",
                      flush=True)  # fmt: skip
                if not good:
                    print("      ", note, flush=True)
    false = alarms - explained
    print(f"{count} diagnoses, {alarms} other than match and rounding, {explained} of them true overflows and crashes: "
          f"{false / max(count, 1):.1%} false alarms")  # fmt: skip


def subjects(folder: Path, seeds: int) -> Iterator[Subject]:
    """Yield the healthy models, small ones first."""
    builders: dict[str, Callable[[int], onnx.ModelProto]] = {
        "mlp": lambda seed: mlp(seed=seed),
        "residual_dag": lambda seed: residual_dag(60, seed=seed),
        "conv_net": lambda seed: conv_net(seed=seed),
        "encoder": lambda seed: encoder(layers=3, seed=seed),
        "encoder_ln": lambda seed: encoder(layers=3, decomposed_layernorm=False, seed=seed),
        "encoder_217": lambda seed: encoder(layers=4, width=128, tokens=64, seed=seed),
    }
    for word, build in builders.items():
        for seed in range(seeds):
            model, name = build(seed), f"{word}-{seed}"
            path, feed = save_model(model, folder / f"{name}.onnx"), folder / f"{name}.npz"
            np.savez(feed, **feed_for(model, seed=seed))
            yield Subject(name, path, feed)
    for name in ("digits_vit", "digits_cnn"):
        yield Subject(name, EXAMPLES / f"{name}.onnx", EXAMPLES / "digits.npz")
    for path in sorted(LIGHT.glob("*.onnx")):
        model = dressed(onnx.load(path))
        onnx.save(model, folder / path.name)
        feed = folder / f"{path.stem}.npz"
        np.savez(feed, **image_for(model))
        yield Subject(path.stem, folder / path.name, feed)


def ask(subject: Subject, target: str, case: Path) -> tuple[str, str, float]:
    """Return the verdict (or the slug of an error), its summary and the seconds it took."""
    started = time.perf_counter()
    feeding = FeedRequest(paths=(str(subject.feed),), most=8)
    try:
        found = diagnose(DiagnoseRequest(model=subject.model, target=target, feeding=feeding, case=case))
        verdict, note = found.verdict, found.summary
    except TriageError as error:
        verdict, note = f"error[{error.slug}]", error.message
    return verdict, note, time.perf_counter() - started


def runs(subject: Subject, model: onnx.ModelProto, names: Sequence[str]) -> list[np.ndarray]:
    """Return some values of a model as bare ONNX Runtime computes them without optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(list(names), dict(np.load(subject.feed))))


def kills_openvino(subject: Subject) -> bool:
    """Whether a bare OpenVINO dies of the model, without this tool."""
    code = (
        f"import openvino; core = openvino.Core(); core.compile_model(core.read_model({str(subject.model)!r}), 'CPU')"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode < 0


def overflows(subject: Subject, target: str) -> bool:
    """Whether a value or a weight of the model is beyond the largest number of the target's format."""
    limit = 57344.0 if "fp8e5m2" in target else 448.0 if "fp8e4m3" in target else 65504.0
    model = onnx.load(subject.model)
    weights = (numpy_helper.to_array(w) for w in model.graph.initializer if w.data_type == onnx.TensorProto.FLOAT)
    if any(np.abs(array).max(initial=0) > limit for array in weights):
        return True
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return any(np.abs(a).max(initial=0) > limit for a in runs(subject, model, names) if a.dtype == np.float32)


if __name__ == "__main__":
    main()
