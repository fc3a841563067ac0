"""Which nodes do other tools keep in fp32 on the same model, at what cost, and what error is left?

    python bench/precision_peers.py --model examples/digits_vit_overflow.onnx --metric examples/accuracy.py
        --inputs examples/digits_vit_overflow.npz [--peers-python /path/to/venv/bin/python] [--precision bf16]

Every contestant writes a typed fp16 (or bf16) model; all of them are judged in the same way: the nodes that are fp32
in what they wrote are kept, everything else is rounded (the engine `emulate`), so that ONNX Runtime, which computes
fp16 graphs in fp32 on the CPU, hides nothing. Polygraphy's `debug precision` needs a weakly typed TensorRT; its
searches are ours of the same name, with a check command. Peers run under another interpreter that has nvidia-modelopt
and onnxconverter-common; auto_mixed_precision's sessions, which want CUDA, run unoptimized on the CPU (optimized,
they refuse the half-typed LayerNormalization that ONNX Runtime's fusion makes).
"""

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

from tensortriage.compare.judgement.relative_error import error_of, sqnr_db
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.scripts import METRIC, ScriptFunction
from tensortriage.values.dtype import Precision

AUTOCAST = """
import sys, onnx
from modelopt.onnx.autocast import convert_to_mixed_precision
path, data, result, low = sys.argv[1:]
model = convert_to_mixed_precision(path, low_precision_type=low, keep_io_types=True, calibration_data=data)
onnx.save(model, result)
"""
AUTO_MIXED = """
import sys, numpy as np, onnx
import onnxruntime as ort
from onnxconverter_common import auto_mixed_precision as amp
make, checks = ort.InferenceSession, [0]
def session(*given, **options):  # it asks for CUDA by name
    checks[0] += 1
    options["providers"] = ["CPUExecutionProvider"]
    options["sess_options"] = ort.SessionOptions()
    options["sess_options"].graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return make(given[0], **options)
ort.InferenceSession = session
feed = dict(np.load(sys.argv[2]))
model = amp.auto_convert_mixed_precision(
    onnx.load(sys.argv[1]), feed, rtol=float(sys.argv[4]), atol=float(sys.argv[4]), keep_io_types=True)
onnx.save(model, sys.argv[3])
print("sessions", checks[0])
"""
CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, onnx
from precision_peers import judged
open("checks.log", "a").write("x")
_, error, _ = judged(sys.argv[2], sys.argv[3], "polygraphy_debug.onnx", "", sys.argv[5])
sys.exit(error > float(sys.argv[4]))
"""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one contestant did."""

    name: str
    kept: int
    builds: str
    error: float
    metric: float | None
    seconds: float
    note: str = ""


def judged(original: str, inputs: str, typed: str, metric: str, low: str) -> tuple[int, float, float | None]:
    """Return the nodes that a typed model has in fp32, and error and metric when all others round to the format."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(typed)).graph
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output)}
    outputs = {node.output[0]: node for node in graph.node if node.op_type != "Constant"}
    model = Model.load(original)
    names = {node.name for node in model.graph.nodes}
    wide = [
        node.name
        for value, node in outputs.items()
        if types.get(value) == onnx.TensorProto.FLOAT and node.name in names
    ]
    return (len(wide), *emulated(model, inputs, wide, metric, low))


def emulated(model: Model, inputs: str, wide: list[str], metric: str, low: str) -> tuple[float, float | None]:
    """Return the largest relative error of an output, and the metric, with some nodes kept."""
    import onnx_ir as ir
    import onnxruntime as ort

    def run(proto: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_outputs()]
        return dict(zip(names, session.run(None, feed), strict=True))

    feed = dict(np.load(inputs))
    rounded = round_results(model, Precision(low), specs=value_specs(model), kept=wide)
    found, golden = run(ir.to_proto(rounded.ir), feed), run(ir.to_proto(model.ir), feed)
    error = max(error_of(measure(golden[name], found[name])) for name in golden)
    return error, ScriptFunction(metric, METRIC).number(found, feed) if metric else None


def contestants(given: argparse.Namespace, folder: Path) -> Iterator[Outcome]:
    """Run everything that can be run here."""
    model, inputs, metric = str(given.model.resolve()), str(given.inputs.resolve()), given.metric
    count = len(Model.load(model).graph.nodes)
    low = given.precision
    error, value = emulated(Model.load(model), inputs, [], metric, low)
    yield Outcome(f"all {low} (of {count} nodes)", 0, "0", error, value, 0.0)
    check = ["--check", sys.executable, "check.py", str(Path(__file__).parent), model, inputs, str(given.error), low]
    (folder / "check.py").write_text(CHECK)
    common = ["debug", "precision", model, "--inputs", inputs, "-o", "mixed.onnx"]
    if not given.peers_only:
        yield from own(given, folder, common, check)
    if given.peers_python:
        limit = str(given.error)
        if low == "fp16":  # all that it knows
            words = [model, inputs, "typed.onnx", limit]
            yield peer(given, folder, "onnxconverter-common auto_mixed", AUTO_MIXED, words)
        yield peer(given, folder, "ModelOpt AutoCast", AUTOCAST, [model, inputs, "typed.onnx", low])


def own(given: argparse.Namespace, folder: Path, common: list[str], check: list[str]) -> Iterator[Outcome]:
    """Run ours."""
    sqnr = ["--sqnr", str(sqnr_db(given.error))]
    asked = [*common, *sqnr, "--target"]
    yield triage(given, folder, "triage, emulate", [*asked, f"emulate:precision={given.precision}"])
    yield triage(given, folder, "triage, check command", [*common, f"--{given.precision}", *check])
    for mode in given.modes:
        words = [*common, f"--{given.precision}", "--mode", mode, *check]
        yield triage(given, folder, f"Polygraphy's {mode}, check command", words)


def triage(given: argparse.Namespace, folder: Path, name: str, words: list[str]) -> Outcome:
    """Run ours."""
    started = time.perf_counter()
    done = subprocess.run(
        [given.triage, *words[:3], "--case", f"case {name}", "--json", *words[3:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        return Outcome(name, 0, "", float("nan"), None, seconds, done.stderr.strip()[-200:])
    plan = json.loads(done.stdout)
    _, error, value = judged(*words[2:5:2], str(folder / "mixed.onnx"), given.metric, given.precision)
    return Outcome(name, len(plan["kept"]), str(plan["builds"]), error, value, seconds)


def peer(given: argparse.Namespace, folder: Path, name: str, script: str, words: list[str]) -> Outcome:
    """Run a peer under its own interpreter."""
    started = time.perf_counter()
    done = subprocess.run(
        [given.peers_python, "-c", script, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        return Outcome(name, 0, "", float("nan"), None, seconds, done.stderr.strip()[-200:])
    sessions = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("sessions")]
    kept, error, value = judged(words[0], words[1], str(folder / "typed.onnx"), given.metric, given.precision)
    return Outcome(name, kept, sessions[0] if sessions else "0", error, value, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--inputs", type=Path, required=True)
    parser.add_argument("--metric", default="")
    parser.add_argument("--error", type=float, default=2e-3, help="relative error that is asked of everybody")
    parser.add_argument("--modes", nargs="*", default=["bisect"])
    parser.add_argument("--precision", choices=("fp16", "bf16"), default="fp16")
    parser.add_argument("--triage", default=str(Path(sys.executable).with_name("triage")))
    parser.add_argument("--peers-only", action="store_true")
    parser.add_argument("--peers-python", default="")
    given = parser.parse_args()
    print(f"{'':40}{'kept':>6}{'builds':>8}{'error':>10}{'metric':>8}{'s':>8}")
    with tempfile.TemporaryDirectory() as name:
        for outcome in contestants(given, Path(name)):
            value = "" if outcome.metric is None else f"{outcome.metric:.3f}"
            print(
                f"{outcome.name:40}{outcome.kept:6}{outcome.builds:>8}{outcome.error:10.1e}{value:>8}"
                f"{outcome.seconds:8.1f} {outcome.note}",
                flush=True,
            )


if __name__ == "__main__":
    main()
