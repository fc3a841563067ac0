"""Does ``debug reduce`` find planted faults in exported networks: QDQ, If, Loop, shared weights, flaky ones?

    python bench/networks FOLDER reduce                   (once, with PyTorch)
    python bench/reduce_exported.py FOLDER [--only NAME ...] [--part steady flaky engines] [--seeds 1]

A fault needs one node, a node and one that uses its result, or three nodes anywhere in one graph, be it the body of a
Loop. Every case goes through `tensortriage.workflows.reduce.reduce`, the function behind the command. The check command
is a function of this process, for speed: it loads each piece, and fails (exit code 1) when the nodes are all in it;
"valid" are the pieces that `onnx.checker` takes, full check, and ONNX Runtime loads, the result being one of them.
Engines are the reference with a fault that is there as long as all needed nodes are in what was built.

"right" is a result of exactly the needed nodes, called minimal; "said" one that is larger and not called minimal, or a
refusal that says why; anything else is "WRONG". "bits" is log2 C(n, k), the least number of yes-no answers that tell k
needed nodes of n; "checks" are those after the three runs of the whole, "x" their ratio.
"""

import argparse
import contextlib
import dataclasses
import itertools
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import reduce_planted
from onnx import helper, numpy_helper

from tensortriage.engines import registry
from tensortriage.engines.base import Session
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.errors import TriageError
from tensortriage.reduce.reduction_result import Reduction
from tensortriage.reduce.repro import repro_pack
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.commands.process import CommandLine, Finished, Processes
from tensortriage.runs.commands.transcript import Printed
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows import reduce as workflow

RATES = (0.3, 0.5, 0.7, 0.9)
SIZES = {"1": 1, "2 adjacent": 2, "3 anywhere": 3}
"""Needed nodes."""
FACTOR = 1.5
"""By which a planted fault multiplies."""


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and the bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def has_body(node: onnx.NodeProto) -> bool:
    """Whether a node holds a graph."""
    return any(attribute.HasField("g") for attribute in node.attribute)


def names_of(graph: onnx.GraphProto) -> frozenset[str]:
    """Return the names of the nodes of a graph and of the bodies in it, which survive every cut."""
    return frozenset(node.name for one in graphs(graph) for node in one.node)


def floats(model: onnx.ModelProto) -> frozenset[str]:
    """Return the values of type float32, as far as inference tells, bodies included."""
    inferred = onnx.shape_inference.infer_shapes(model)
    return frozenset(
        value.name
        for graph in graphs(inferred.graph)
        for value in (*graph.value_info, *graph.output)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    )


def needed_in(model: onnx.ModelProto, kind: str, seed: str) -> tuple[str, ...]:
    """Draw what a fault needs; the first of them makes a float32 result."""
    rng, kinds = random.Random(seed), floats(model)
    most = sorted(graphs(model.graph), key=lambda graph: len(graph.node))
    weights = [len(graph.node) for graph in most]
    while True:
        (graph,) = rng.choices(most, weights)
        nodes = [node for node in graph.node if node.op_type != "Constant" and not has_body(node)]
        first = [node for node in nodes if node.output[0] in kinds]
        if not first:
            continue
        node = rng.choice(first)
        if kind == "2 adjacent":
            users = [user for user in nodes if node.output[0] in user.input]
            if users:
                return node.name, rng.choice(users).name
        elif len(nodes) >= SIZES[kind]:
            others = [other for other in nodes if other is not node]
            return node.name, *(other.name for other in rng.sample(others, SIZES[kind] - 1))
        if len(most) == 1 and len(nodes) < SIZES[kind]:
            raise ValueError("too few nodes")


# --- who is asked -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Check:
    """Stands in for the check command: exit code 1 when a piece holds all needed nodes, 3 when it is no model.

    Attributes:
        needed: Names of the nodes.
        rate: Share of the runs in which the fault shows.
        draw: Says in which.
        invalid: What was wrong with pieces that are no models.
    """

    needed: frozenset[str]
    rate: float
    draw: random.Random
    invalid: list[str] = dataclasses.field(default_factory=list)

    def run(self, command: CommandLine, /) -> Finished:
        """Take the place of `Processes.run`."""
        model = onnx.load(command.words[1])
        if problem := refused(model):
            self.invalid.append(problem)
            return Finished(3, Printed(), 0.0)
        shows = self.needed <= names_of(model.graph) and self.draw.random() < self.rate
        return Finished(int(shows), Printed(), 0.0)


def refused(model: onnx.ModelProto) -> str:
    """Return why a file is no valid model; empty for one that is."""
    try:
        onnx.checker.check_model(model, full_check=True)
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        onnxruntime.InferenceSession(model.SerializeToString(), settings)
    except Exception as error:  # every kind of refusal counts
        return str(error).splitlines()[0]
    return ""


class FileFaultEngine(OnnxRuntimeEngine):
    """ONNX Runtime on a file in which one result is multiplied, as long as all needed nodes are in it."""

    name: ClassVar[str] = "filefault"
    needed: ClassVar[tuple[str, ...]] = ()
    rate: ClassVar[float] = 1.0
    draw: ClassVar[random.Random] = random.Random(0)

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build a model, with the fault when all nodes are there."""
        loaded = onnx.load(model)
        if set(self.needed) <= names_of(loaded.graph) and self.draw.random() < self.rate:
            plant(loaded, self.needed[0])
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "m.onnx"
            onnx.save(loaded, path)
            return super().compile(path, {"optimization": "none", **options})


def plant(model: onnx.ModelProto, name: str) -> None:
    """Multiply the result of a node by `FACTOR`, in whatever graph it is."""
    for graph in graphs(model.graph):
        for place, node in enumerate(graph.node):
            if node.name == name:
                value, node.output[0] = node.output[0], f"{node.output[0]}/right"
                factor = numpy_helper.from_array(np.array(FACTOR, np.float32))
                graph.node.insert(place + 1, helper.make_node("Mul", [f"{value}/right", f"{value}/factor"], [value]))
                graph.node.insert(place + 1, helper.make_node("Constant", [], [f"{value}/factor"], value=factor))
                return


# --- one case ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one case.

    Attributes:
        word: ``right``, ``said`` or ``WRONG``.
        detail: Of all but right ones.
        checks: After the runs of the whole.
        bits: log2 C(n, k).
        invalid: Pieces that are no models.
    """

    word: str
    detail: str = ""
    checks: int = 0
    bits: float = 0.0
    invalid: Sequence[str] = ()


PREMISE = 3


def judged(needed: Sequence[str], nodes: int, found: Reduction, invalid: Sequence[str]) -> Outcome:
    """Compare a result with what was planted; the written file is looked at, not what is said of it."""
    model = onnx.load("r.onnx")
    left = {node.name for one in graphs(model.graph) for node in one.node if node.op_type != "Constant"}
    around = {node.name for one in graphs(model.graph) for node in one.node if has_body(node)}
    checks, bits = found.checks + found.repeats - PREMISE, math.log2(math.comb(nodes, len(needed)))
    sure = len(found.kept) == 1 or (found.confidence is not None and found.confidence >= 0.95)
    opened = "; ".join(f"{one.what} {one.detail}" for one in found.opened if not one.done)
    minimal = found.minimality == "one-minimal" and sure and not opened
    detail = f"{len(left)} kept: {sorted(left - set(needed))} {opened}"
    if problem := refused(model):
        return Outcome("WRONG", f"not valid: {problem}", checks, bits, invalid)
    if not set(needed) <= left:
        return Outcome("WRONG", f"lacks {set(needed) - left}", checks, bits, invalid)
    if not found.verified:
        return Outcome("WRONG", f"did not fail again: {found.otherwise}", checks, bits, invalid)
    if left - around == set(needed) and (minimal or found.runs > found.failed_runs):
        return Outcome("right", "" if minimal else "not said to be minimal", checks, bits, invalid)
    return Outcome("WRONG" if minimal else "said", detail, checks, bits, invalid)


def reduced(model: Path, kind: str, part: str, rate: float, seed: int) -> Outcome:
    """Plant a fault into a network, reduce it in a folder of its own, and judge the result.

    What an engine does wrong in a branch that is not taken does not show: another fault is drawn then.
    """
    for draw in itertools.count():
        found = _reduced(model, kind, part, rate, f"{model.stem} {kind} {seed}{draw or ''}")
        if part != "engines" or "premise-not-failing" not in found.detail:
            return found
    raise AssertionError


def _reduced(model: Path, kind: str, part: str, rate: float, seed: str) -> Outcome:
    loaded = onnx.load(model)
    needed = needed_in(loaded, kind, seed)
    nodes = sum(node.op_type != "Constant" for graph in graphs(loaded.graph) for node in graph.node)
    draw, before = random.Random(f"{rate} {seed}"), Path.cwd()
    check = Check(frozenset(needed), rate, draw)
    asked = {"check": CheckSpec(words=("check", "polygraphy_debug.onnx"))}
    if part == "engines":
        FileFaultEngine.needed, FileFaultEngine.rate, FileFaultEngine.draw = needed, rate, draw
        feeding = FeedRequest(paths=(str(model.with_suffix(".npz")),))
        asked = {"target": "filefault", "feeding": feeding, "shrink_seconds": 0.0}
    engines = {**registry.BUILT_IN, "filefault": f"{FileFaultEngine.__module__}:FileFaultEngine"}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as enter:
        os.chdir(folder)
        enter.callback(os.chdir, before)
        enter.enter_context(mock.patch.object(registry, "BUILT_IN", engines))
        enter.enter_context(mock.patch.object(repro_pack, "tried", reduce_planted.tried))
        enter.enter_context(mock.patch.object(Processes, "run", lambda _, words, **given: check.run(words, **given)))
        request = workflow.ReduceRequest(model=model, output=Path("r.onnx"), premise=PREMISE, **asked)
        try:
            found = workflow.reduce(request, listener=reduce_planted.Deaf())
        except TriageError as error:
            return Outcome("said", f"{error.slug}: {error.message}", invalid=check.invalid)
        return judged(needed, nodes, found, check.invalid)


PARTS: Mapping[str, Sequence[tuple[str, float]]] = {
    "steady": [(kind, 1.0) for kind in SIZES],
    "flaky": [(kind, rate) for kind in ("1", "2 adjacent") for rate in RATES],
    "engines": [("1", 1.0), ("2 adjacent", 1.0)],
}
"""Kinds of faults and their rates."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=None)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    models = sorted(
        path.absolute() for path in given.folder.glob("*.onnx") if given.only is None or path.stem in given.only
    )
    for part in given.part:
        rows: dict[tuple[str, float], list[Outcome]] = {}
        for model in models:
            for number, (kind, rate) in enumerate(PARTS[part]):
                if part == "flaky" and number % len(RATES) != models.index(model) % len(RATES):
                    continue  # each network at one rate
                for seed in range(given.seeds):
                    started = time.perf_counter()
                    one = reduced(model, kind, part, rate, seed)
                    rows.setdefault((kind, rate), []).append(one)
                    print(
                        f"{part:8}{model.stem:16}{kind:12}{rate:5.0%}{seed:3}  {one.word:6}{one.checks:5} checks "
                        f"{one.bits:6.1f} bits {time.perf_counter() - started:6.1f} s {len(one.invalid)} invalid "
                        f"{next(iter(one.invalid), '')} {one.detail}",
                        flush=True,
                    )
        for (kind, rate), found in rows.items():
            ratios = [one.checks / one.bits for one in found if one.bits]
            words = " ".join(f"{word} {sum(one.word == word for one in found)}" for word in ("right", "said", "WRONG"))
            print(
                f"{part:8}{kind:12}{rate:5.0%}{len(found):4} cases: {words}; invalid pieces "
                f"{sum(len(one.invalid) for one in found)}; x {statistics.median(ratios):.2f} {max(ratios):.2f}; all "
                f"{sum(one.checks for one in found) / sum(one.bits for one in found):.2f}"
            )


if __name__ == "__main__":
    main()
