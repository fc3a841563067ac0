"""Does `triage debug precision` find the nodes that need more bits, and in how many builds of the engine?

    python bench/precision.py --cases 100 --target emulate:precision=fp16

Every case is a random graph of 100 to 500 nodes (`tensortriage_testing.residual_dag`) into which sensitive nodes are
planted, so that the smallest set is known:

- *single*: a Sum with constants that cancel in float32 but not in fp16 (2049 - 2047 - 2 is -1 when 2049 becomes
  2048). Only the node itself suffers; each is seen to fail when it alone computes in fp16, so each is needed.
- *pair*: two such sums of nothing, whose product is added to the graph: harmless while one of both is exact. One
  of both is needed, and no measure of single nodes can see either.

The graph itself, all in fp16, must be good enough by 10 dB, so nothing else is needed.
"""

import argparse
import dataclasses
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tensortriage.compare.judgement.relative_error import error_of, sqnr_db
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.precision.plan import PrecisionPlan
from tensortriage.precision.search.request import GoalRequest, PrecisionRequest
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage.workflows.find_precision import find_precision
from tensortriage_testing import feed_for, residual_dag

SPARE_DB = 10.0
"""How much better than the goal the graph is without anything planted."""
LEAST_DB, TRIES = 20.0, 20
WIDTH = 16


@dataclasses.dataclass(frozen=True)
class Kind:
    """How many nodes of which kind are planted."""

    singles: int
    pairs: int

    @property
    def needed(self) -> int:
        """Size of the smallest set."""
        return self.singles + self.pairs

    def __str__(self) -> str:
        return f"{self.singles} sensitive" + (f" + {self.pairs} pairs" if self.pairs else "")


KINDS = (Kind(1, 0), Kind(3, 0), Kind(6, 0), Kind(1, 2))


@dataclasses.dataclass(frozen=True)
class Case:
    """A planted graph, its feed, the goal, and what is planted: groups of which one node each is needed."""

    model: onnx.ModelProto
    feed: dict[str, np.ndarray]
    sqnr_db: float
    groups: tuple[frozenset[str], ...]


class Silent:
    """Listens to nothing."""

    def progress(self, text: str) -> None:
        """Ignore."""

    def tell(self, text: str) -> None:
        """Ignore."""


def planted(kind: Kind, nodes: int, seed: int) -> Case:
    """Return a case whose smallest set is known; places at which a planted node does no harm are left."""
    rng = random.Random(seed)
    base = residual_dag(nodes, seed=seed, width=WIDTH, batch=8)
    feed = feed_for(base, seed=seed, batch=8)
    goal = sqnr_db(_error(base, feed, kept=())) - SPARE_DB
    if not goal > LEAST_DB:  # chaotic: every rounding ends in another answer
        return planted(kind, nodes, seed + 1000)
    for _ in range(TRIES):
        model = onnx.ModelProto()
        model.CopyFrom(base)
        groups = tuple(_plant(model, kind, rng))
        if _is_known(model, feed, 10.0 ** (-goal / 20.0), groups):
            return Case(model, feed, goal, groups)
    return planted(kind, nodes, seed + 1000)


def _plant(model: onnx.ModelProto, kind: Kind, rng: random.Random) -> Iterator[frozenset[str]]:
    graph = model.graph
    outputs = {value.name for value in graph.output}
    places = [name for node in graph.node for name in node.output if name not in outputs]
    for number, place in enumerate(rng.sample(places, kind.singles + kind.pairs)):
        if number < kind.singles:
            name = f"/planted_{number}/Sum"
            _insert(graph, place, [_sum(graph, name, [place], rng)], f"{name}_output")
            yield frozenset({name})
        else:
            first, second = f"/pair_{number}/first/Sum", f"/pair_{number}/second/Sum"
            made = [_sum(graph, name, [], rng) for name in (first, second)]
            made.append(_node("Mul", f"/pair_{number}/Mul", f"{first}_output", f"{second}_output"))
            made.append(_node("Add", f"/pair_{number}/Add", place, f"/pair_{number}/Mul_output"))
            _insert(graph, place, made, f"/pair_{number}/Add_output")
            yield frozenset({first, second})


def _sum(graph: onnx.GraphProto, name: str, inputs: list[str], rng: random.Random) -> onnx.NodeProto:
    """Return a Sum of constants that leaves 0 in float32 and about 1 in fp16; alone it also sums zeros of the input."""
    signs = np.array([rng.choice((-1.0, 1.0)) for _ in range(WIDTH)], np.float32)
    constants = []
    for index, number in enumerate((2049.0, -2047.0, -2.0)):
        constants.append(f"{name}.constant_{index}")
        graph.initializer.append(numpy_helper.from_array(number * signs, constants[-1]))
    if not inputs:  # an engine would fold a sum of nothing but constants
        zero = f"{name}.zero"
        graph.initializer.append(numpy_helper.from_array(np.zeros(WIDTH, np.float32), zero))
        graph.node.append(_node("Mul", f"{name}.nothing", graph.input[0].name, zero))
        inputs = [f"{name}.nothing_output"]
    return _node("Sum", name, *inputs, *constants)


def _node(op_type: str, name: str, *inputs: str) -> onnx.NodeProto:
    return helper.make_node(op_type, list(inputs), [f"{name}_output"], name=name)


def _insert(graph: onnx.GraphProto, place: str, made: Sequence[onnx.NodeProto], result: str) -> None:
    """Put nodes behind a value, and let all its readers read their result."""
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == place:
                node.input[index] = result
    graph.node.extend(made)
    known = {value.name for value in (*graph.input, *graph.initializer)}
    left, ordered = list(graph.node), []
    while left:
        ready = [node for node in left if known.issuperset(node.input)]
        ordered += ready
        known.update(name for node in ready for name in node.output)
        left = [node for node in left if node.name not in {other.name for other in ready}]
    del graph.node[:]
    graph.node.extend(ordered)


def _is_known(
    model: onnx.ModelProto, feed: dict[str, np.ndarray], limit: float, groups: Sequence[frozenset[str]]
) -> bool:
    """Whether one node of each group is enough, and a whole group in fp16, all else kept, is too much."""
    names = {node.name for node in model.graph.node}
    enough = [min(group) for group in groups]
    if _error(model, feed, kept=enough) > limit:
        return False
    return all(_error(model, feed, kept=names - group) > 1.5 * limit for group in groups)


def _error(proto: onnx.ModelProto, feed: dict[str, np.ndarray], *, kept: Sequence[str] | set[str]) -> float:
    import onnx_ir as ir

    model = Model.from_ir(ir.from_proto(proto))
    low = round_results(model, Precision.FP16, specs=value_specs(model), kept=sorted(kept))
    return error_of(measure(_run(proto, feed)["y"], _run(ir.to_proto(low.ir), feed)["y"]))


def _run(proto: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def solve(case: Case, folder: Path, target: str) -> PrecisionPlan:
    """Run the search on a case."""
    onnx.save(case.model, folder / "model.onnx")
    np.savez(folder / "feed.npz", **case.feed)
    request = PrecisionRequest(
        model=folder / "model.onnx",
        output=folder / "mixed.onnx",
        target=target,
        goal=GoalRequest(sqnr_db=case.sqnr_db),
        feeding=FeedRequest(paths=[str(folder / "feed.npz")]),
        case=folder / "case",
    )
    return find_precision(request, listener=Silent())


@dataclasses.dataclass(frozen=True)
class Row:
    """One solved case."""

    kind: str
    nodes: int
    seed: int
    builds: int
    emulated: int
    kept: int
    needed: int
    hit: bool
    seconds: float


def study(
    cases: int, target: str, sizes: tuple[int, int] = (100, 500), kinds: Sequence[Kind] = KINDS, *, first: int = 0
) -> Iterator[Row]:
    """Solve seeded cases, kinds in turn."""
    for seed in range(first, first + cases):
        kind = kinds[seed % len(kinds)]
        nodes = random.Random(seed).randint(*sizes)
        case = planted(kind, nodes, seed)
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as name:
            plan = solve(case, Path(name), target)
        rounding = {node.node for node in plan.nodes}
        yield Row(
            str(kind), nodes, seed, plan.builds, plan.emulated, len(rounding), kind.needed,
            all(rounding & group for group in case.groups), time.perf_counter() - started,
        )  # fmt: skip


def show(rows: Sequence[Row]) -> None:
    """Print a table by kind."""
    print(f"{'kind':26}{'cases':>6}{'builds':>8}{'worst':>6}{'emulated':>9}{'excess':>7}{'worst':>6}{'hit':>6}{'s':>7}")
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in rows if row.kind == kind]
        excess = [row.kept - row.needed for row in own]
        print(
            f"{kind:26}{len(own):6}{statistics.median(r.builds for r in own):8.0f}{max(r.builds for r in own):6}"
            f"{statistics.median(r.emulated for r in own):9.0f}{statistics.median(excess):7.0f}{max(excess):6}"
            f"{sum(r.hit for r in own) / len(own):6.0%}{statistics.median(r.seconds for r in own):7.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--target", default="emulate:precision=fp16")
    given = parser.parse_args()
    rows = []
    for row in study(given.cases, given.target):
        rows.append(row)
        print(json.dumps(dataclasses.asdict(row)), file=sys.stderr, flush=True)
    show(rows)
    missed = [row for row in rows if not row.hit or math.isnan(row.seconds)]
    print(f"cases in which a needed node was missed: {len(missed)}")


if __name__ == "__main__":
    main()
