"""Does `triage diagnose` name the planted culprit? One fault per operator type (or per kind), one at a time.

    python bench/planted.py --layers 12 --kinds scale noise
    python bench/planted.py --layers 2 --kinds all
    python bench/planted.py --model conv_net --precision bf16 --amount 1.5
    python bench/planted.py --layers 2 --visible

Prints one line per fault (verdict, first culprit, confidence, seconds) and the share that is right. A fault that the
outputs do not show (a mask of ones, scaled before a LayerNorm) is no error of anybody: whether they show it is found
out without the diagnosis, by running the faulty engine and comparing its outputs with those of the same engine without
the fault. Such faults are counted apart: there `match` (or `rounding`) is right. With --visible one kind per operator
type is chosen, the first that shows at any of its nodes.
"""

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.envelope.limits import of_rounding
from tensortriage.errors import TriageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_testing import FaultyEngine, conv_net, encoder, feed_for, save_model

ENGINE = "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine):\n    pass\n"
KINDS = (
    "scale",
    "noise",
    "offset",
    "sign",
    "saturate",
    "off-by-one",
    "zero-tail",
    "permute",
    "wrong-axis",
    "bf16-accumulate",
    "nan",
    "nondeterministic",
    "crash",
    "build-failure",
)
EXPECTED = {
    "nan": "non-finite",
    "nondeterministic": "nondeterministic-run",
    "crash": "engine-crash",
    "hang": "engine-hang",
    "build-failure": "build-failed",
}
"""Verdicts of the kinds that are no local fault."""

NAMELESS = ("engine-crash", "engine-hang", "build-failed")
"""Verdicts without a culprit."""

HARMLESS = ("match", "rounding")
VISIBLE_FP32 = 10.0
"""From which multiple of the healthy fp32 engine's error a fault counts as visible: the bar that verdicts promise."""

MODELS: Mapping[str, Callable[[int], onnx.ModelProto]] = {
    "encoder": lambda layers: encoder(layers=layers, width=128, heads=4, tokens=64, batch=2),
    "encoder_ln": lambda layers: encoder(layers=layers, width=128, heads=4, decomposed_layernorm=False),
    "conv_net": lambda layers: conv_net(blocks=layers),
}


@dataclasses.dataclass
class Bench:
    """One model with its feed, and what the healthy engine makes of it."""

    folder: Path
    model: onnx.ModelProto
    precision: str

    def __post_init__(self) -> None:
        self.path = save_model(self.model, self.folder / "model.onnx")
        self.feed = feed_for(self.model)
        np.savez(self.folder / "feed.npz", **self.feed)
        (self.folder / "faulty.py").write_text(ENGINE)
        self.right = OnnxRuntimeEngine().compile(self.path, {"optimization": "none"}).run(self.feed)
        exact = Float64Engine().compile(self.path, {}).run(self.feed)
        rounded = FaultyEngine().compile(self.path, self.base).run(self.feed)
        self.healthy = self.error(rounded) if self.precision else self.error(exact)

    @property
    def base(self) -> dict[str, str]:
        """Options of the engine without its fault."""
        return {"precision": self.precision} if self.precision else {}

    def error(self, outputs: Mapping[str, np.ndarray]) -> Mapping[str, float]:
        """Return the relative RMS error of each output."""
        return {
            name: float(np.sqrt(np.mean((outputs[name] - right) ** 2) / np.mean(right**2)))
            for name, right in self.right.items()
        }

    def shows(self, options: Mapping[str, str]) -> bool:
        """Say whether any output of the faulty engine is further off than a healthy engine's may be.

        Raises:
            TriageError: When the fault cannot be planted there.
        """
        if options["kind"] in EXPECTED:
            return True
        found = self.error(FaultyEngine().compile(self.path, {**self.base, **options}).run(self.feed))
        return any(not error <= self.bar(name) * self.healthy[name] for name, error in found.items())

    def bar(self, name: str) -> float:
        """Return from which multiple of the healthy engine's error a fault shows in an output."""
        if not self.precision:
            return VISIBLE_FP32
        return of_rounding(1.0, self.right[name].size)

    def breaks(self, options: Mapping[str, str]) -> bool:
        """Say whether the faulty engine's outputs hold a NaN or Inf."""
        if options["kind"] in EXPECTED:
            return False
        found = FaultyEngine().compile(self.path, {**self.base, **options}).run(self.feed)
        return not all(np.isfinite(array).all() for array in found.values())

    def ask(self, options: Mapping[str, str]) -> tuple[str, str, float, str]:
        """Return verdict, first culprit, confidence and summary of a diagnosis."""
        words = ",".join(f"{key}={value}" for key, value in {**options, **self.base}.items())
        verdict = diagnose(
            DiagnoseRequest(
                model=self.path,
                target=f"script:{self.folder / 'faulty.py'},{words}",
                feeding=FeedRequest(paths=(str(self.folder / "feed.npz"),)),
                case=self.folder / "case",
            )
        )
        first = verdict.culprits[0].node if verdict.culprits else "-"
        return verdict.verdict, first, verdict.confidence, verdict.summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="encoder")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--kinds", nargs="+", default=["scale"], help="kinds of faults, or: all")
    parser.add_argument("--visible", action="store_true", help="one kind per operator type, the first that shows")
    parser.add_argument("--amount", default="", help="in the unit of the kind")
    parser.add_argument("--precision", default="", help="base precision of the faulty engine, e.g. bf16")
    arguments = parser.parse_args()
    kinds = KINDS if arguments.kinds == ["all"] else tuple(arguments.kinds)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), MODELS[arguments.model](arguments.layers), arguments.precision)
        faults = visible(bench) if arguments.visible else every(bench, kinds, arguments.amount)
        tally = {"ok": 0, "MISS": 0, "hidden": 0, "ALARM": 0}
        for node, options, shows in faults:
            started = time.perf_counter()
            verdict, first, confidence, summary = bench.ask(options)
            wrong = "layout" if options["kind"] == "permute" else "local-fault"
            expected = EXPECTED.get(options["kind"], "non-finite" if bench.breaks(options) else wrong)
            word = judged(options, expected, verdict, first, shows)
            tally[word] += 1
            print(f"{word:6} {node.op_type:18} {options['kind']:15} {verdict:20} {first:36} {confidence:.2f} "
                  f"{time.perf_counter() - started:5.1f} s", flush=True)  # fmt: skip
            if word in ("MISS", "ALARM"):
                print(f"       planted in {node.name}: {summary}", flush=True)
    shown, unseen = tally["ok"] + tally["MISS"], tally["hidden"] + tally["ALARM"]
    print(f"{tally['ok']} of {shown} visible faults right, {tally['hidden']} of {unseen} invisible ones left alone")


def judged(options: Mapping[str, str], expected: str, verdict: str, first: str, shows: bool) -> str:
    """Return how good a verdict is: ok or MISS for a fault that shows, hidden or ALARM for one that does not."""
    right = verdict == expected and (expected in NAMELESS or first == options["node"])
    if shows:
        return "ok" if right else "MISS"
    return "hidden" if right or verdict in HARMLESS else "ALARM"


def every(bench: Bench, kinds: Sequence[str], amount: str) -> Iterator[tuple[onnx.NodeProto, Mapping[str, str], bool]]:
    """Yield every kind in one node of every operator type, the one nearest the middle of the model."""
    for nodes in by_type(bench.model).values():
        for kind in kinds:
            options = {"kind": kind, "node": nodes[0].name, **({"amount": amount} if amount else {})}
            try:
                yield nodes[0], options, bench.shows(options)
            except TriageError:
                continue  # this kind is none for this operator


def visible(bench: Bench) -> Iterator[tuple[onnx.NodeProto, Mapping[str, str], bool]]:
    """Yield one fault that shows per operator type."""
    for op_type, nodes in by_type(bench.model).items():
        for kind, node in ((kind, node) for kind in KINDS for node in nodes[:4] if kind not in EXPECTED):
            options = {"kind": kind, "node": node.name}
            try:
                if bench.shows(options):
                    yield node, options, True
                    break
            except TriageError:
                continue
        else:
            print(f"       no fault shows in {op_type}", flush=True)


def by_type(model: onnx.ModelProto) -> Mapping[str, list[onnx.NodeProto]]:
    """Return the nodes of every operator type, those nearest the middle of the model first."""
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    found: dict[str, list[onnx.NodeProto]] = {}
    for _, node in sorted(enumerate(nodes), key=lambda item: abs(item[0] - len(nodes) // 2)):
        found.setdefault(node.op_type, []).append(node)
    return found


if __name__ == "__main__":
    main()
