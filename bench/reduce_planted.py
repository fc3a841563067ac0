"""Does ``debug reduce`` find planted faults in real models of 500 nodes, and in how many checks?

    python bench/reduce_planted.py [--seeds 10] [--nodes 500] [--part check engines hidden flaky] [--shapes chain ...]

The graphs are those of ``bench/search.py`` made into ONNX models that run: chains, residual, branchy and
transformer-like ones, of which 1 to 3 nodes are needed, adjacent or anywhere. Every case goes through
`tensortriage.workflows.reduce.reduce`, the function behind the command: it loads the model, writes pieces,
asks, shrinks nothing, writes the result and sees it fail again. Two things stand in, for speed: the check command is a
function of this process that looks into the file of each piece, and the faulty engine runs in this process.

"checks" are those that the search rests on: the three of the premise and every confirmation are in them. "right" is the
share of results that are exactly the needed nodes, "1-minimal" the share of which every node was seen to be needed.
"""

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import onnx

from tensortriage.engines import registry
from tensortriage.engines.base import Limits, Session
from tensortriage.engines.spec import EngineSpec
from tensortriage.reduce.failure import Failure
from tensortriage.reduce.reduction_result import Reduction
from tensortriage.reduce.repro import repro_pack
from tensortriage.reduce.repro.repro_case import alike, failure_of, load_repro
from tensortriage.reduce.repro.trial import PackTrial
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.commands.process import CommandLine, Finished, Processes
from tensortriage.runs.commands.transcript import Printed
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.lab import Lab
from tensortriage.workflows import reduce as workflow
from tensortriage_testing import Fault, FaultyEngine, save_model
from tensortriage_testing.graph_writer import GraphWriter, floats


def _sibling(name: str) -> Any:
    """Return another benchmark as a module."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


search = _sibling("search")
SIDE = 4
"""Values are matrices of this size."""


def model_of(graph: Sequence[Sequence[int]], seed: int) -> onnx.ModelProto:
    """Return a model with one node per op, named after it; values keep their size, so that errors reach the outputs.

    Ops of one operand are turns, transpositions, and products and sums with constants; those of more are means.
    """
    writer = GraphWriter(seed)
    turns = [np.linalg.qr(writer.rng.standard_normal((SIDE, SIDE)))[0] for _ in range(8)]
    values: list[str] = []
    for index, sources in enumerate(graph):
        operands = [values[source] for source in sources] or ["x"]
        values.append(_node(writer, f"n{index:04}", operands, index, turns))
    used = {source for sources in graph for source in sources}
    ends = [value for index, value in enumerate(values) if index not in used]
    return writer.finish("planted", [floats("x", SIDE, SIDE)], [floats(end, SIDE, SIDE) for end in ends])


def _node(writer: GraphWriter, name: str, operands: Sequence[str], index: int, turns: Sequence[np.ndarray]) -> str:
    if len(operands) > 1:
        return writer.op("Mean", *operands, name=name)
    (operand,) = operands
    kind = index % 4
    if kind == 0:
        return writer.op("MatMul", operand, writer.weight(f"turn{index % 8}", turns[index % 8]), name=name)
    if kind == 1:
        return writer.op("Transpose", operand, name=name, perm=[1, 0])
    if kind == 2:
        factors = 1.0 + 0.2 * np.sin(np.arange(SIDE) + index % 7)
        return writer.op("Mul", operand, writer.weight(f"factors{index % 7}", factors), name=name)
    return writer.op("MatMul", writer.weight(f"turn{(index + 3) % 8}", turns[(index + 3) % 8]), operand, name=name)


def node_names(path: Path) -> frozenset[str]:
    """Return the names of the nodes of a model file: NodeProto.name is field 3, a string of five characters here."""
    return frozenset(name.decode() for name in re.findall(rb"\x1a\x05(n\d{4})", path.read_bytes()))


# --- the judges -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class InProcessCheck:
    """Stands in for the check command: exit code 1 when a piece holds all needed nodes.

    Attributes:
        needed: Names of the nodes.
        hiding: Share of the pieces in which the fault does not show although they are there (always the same ones).
        rate: Share of the runs in which it shows.
        seed: Of both.
    """

    needed: frozenset[str]
    hiding: float = 0.0
    rate: float = 1.0
    seed: str = ""
    asked: int = 0

    def run(self, command: CommandLine, /) -> Finished:
        """Take the place of `Processes.run`."""
        names = node_names(Path(command.words[1]))
        shows = self.needed <= names
        if shows and self.hiding and len(self.needed) < len(names):
            shows = self.asked < WHOLE or search.chance(self.seed, sorted(names)) >= self.hiding
        if shows and self.rate < 1.0:
            shows = search.chance(self.seed, sorted(names), self.asked) < self.rate
        self.asked += 1
        return Finished(int(shows), Printed(), 0.0)


WHOLE = 3
"""Runs of the premise, which no cut can hide."""


class NeedsEngine(FaultyEngine):
    """Makes the first of some nodes wrong as long as all of them are in the model, however far apart."""

    name: ClassVar[str] = "needs"
    options: ClassVar[Mapping[str, str]] = {**FaultyEngine.options, "needed": "names of the nodes, with + between"}

    def compile(self, model: Path, options: Mapping[str, str]) -> Session:
        """Build a model, with the fault when all nodes are there."""
        given = dict(options)
        needed = given.pop("needed").split("+")
        there = node_names(model).issuperset(needed)
        return _Planted(needed[0] if there else None).compile(model, given)


class _Planted(FaultyEngine):
    def __init__(self, node: str | None) -> None:
        super().__init__()
        self.fault = Fault("scale", node=node, amount=1.5) if node else None  # type: ignore[misc]  # an own fault for a class one


# --- one case ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Planted:
    """A model in a folder, and the nodes that its fault needs."""

    folder: Path
    needed: tuple[str, ...]
    seed: str

    @property
    def model(self) -> Path:
        """The model file."""
        return self.folder / "m.onnx"


@contextlib.contextmanager
def planted(shape: str, needed: int, *, adjacent: bool, seed: int, nodes: int) -> Iterator[Planted]:
    """Write the model of a case into a folder of its own, which is the current one meanwhile."""
    case = search.case(shape, needed, adjacent=adjacent, seed=seed, items=nodes)
    graph = [sorted(other for other in case.neighbours[index] if other < index) for index in case.items]
    names = tuple(f"n{index:04}" for index in sorted(case.needed))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            save_model(model_of(graph, seed), Path("m.onnx"))
            rng = np.random.default_rng(seed)
            np.savez("m.npz", x=rng.standard_normal((SIDE, SIDE)).astype(np.float32))
            yield Planted(Path(name), names, case.seed)
        finally:
            os.chdir(before)


class Deaf:
    """A listener that listens to nothing."""

    def step(self, step: object) -> None:
        """Ignore a step."""

    def progress(self, text: str) -> None:
        """Ignore progress."""

    def checked(self, progress: object) -> None:
        """Ignore a check."""

    def tell(self, text: str) -> None:
        """Ignore text."""


Way = Callable[[Planted], Reduction]
"""A way of asking."""


def by_check(case: Planted, *, hiding: float = 0.0, rate: float = 1.0, premise: int = 3) -> Reduction:
    """Reduce by a check that stands for a command."""
    check = InProcessCheck(frozenset(case.needed), hiding, rate, case.seed)
    request = workflow.ReduceRequest(
        model=case.model,
        output=Path("r.onnx"),
        check=CheckSpec(words=("check", "polygraphy_debug.onnx")),
        premise=premise,
    )
    with mock.patch.object(Processes, "run", lambda _, words, **given: check.run(words, **given)):
        return workflow.reduce(request, listener=Deaf())


def by_engine(case: Planted) -> Reduction:
    """Reduce with an engine in this process; the local errors that it shows seed the search."""
    engines = {**registry.BUILT_IN, "needs": f"{NeedsEngine.__module__}:NeedsEngine"}
    request = workflow.ReduceRequest(
        model=case.model,
        output=Path("r.onnx"),
        target=f"needs:needed={'+'.join(case.needed)}",
        feeding=FeedRequest(paths=("m.npz",)),
        shrink_seconds=0.0,
    )
    with (
        mock.patch.object(registry, "BUILT_IN", engines),
        mock.patch.object(repro_pack, "tried", tried),
    ):
        return workflow.reduce(request, listener=Deaf())


def tried(folder: Path, target: EngineSpec, local: Failure, limits: Limits, attempts: int = 1) -> PackTrial:
    """Ask about the written result in this process, where the engine is known."""
    repro = load_repro(folder)
    with Lab(limits=limits) as lab, lab.session(target, repro.model, sequence=True) as run:
        again = (alike(failure_of(repro, run, signal=local.signal), local) for _ in range(attempts))
        return PackTrial("" if any(again) else "it passes")


# --- many cases -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """What came of all cases of one kind."""

    title: str
    results: tuple[tuple[Planted, Reduction], ...]
    seconds: float

    @property
    def checks(self) -> list[int]:
        """Checks of every case, in ascending order."""
        return sorted(reduction.checks + reduction.repeats for _, reduction in self.results)

    @property
    def right(self) -> float:
        """Share of the results that are the needed nodes."""
        return statistics.fmean(is_right(case, reduction) for case, reduction in self.results)

    @property
    def minimal(self) -> float:
        """Share of the results that were seen to fail and of which every node was seen to be needed."""
        return statistics.fmean(shown_minimal(reduction) for _, reduction in self.results)

    def __str__(self) -> str:
        checks, count = self.checks, len(self.results)
        sizes = [len(reduction.kept) for _, reduction in self.results]
        confidence = [reduction.confidence for _, reduction in self.results if reduction.confidence is not None]
        return (
            f"{self.title:36}{count:6}{statistics.median(checks):8.0f}{checks[-1]:7d}{self.right:9.1%}"
            f"{self.minimal:11.1%}{statistics.median(sizes):7.0f}{self.seconds / count:8.2f}"
            + (f"{min(confidence):12.3f}" if confidence else "")
        )


HEADER = f"{'':36}{'cases':>6}{'median':>8}{'worst':>7}{'right':>9}{'1-minimal':>11}{'size':>7}{'s each':>8}"


def is_right(case: Planted, reduction: Reduction) -> bool:
    return tuple(node.name for node in reduction.kept) == case.needed == tuple(sorted(node_names_of(reduction)))


def node_names_of(reduction: Reduction) -> frozenset[str]:
    return frozenset(node.name for node in reduction.kept)


def shown_minimal(reduction: Reduction) -> bool:
    alone = len(reduction.kept) == 1
    confirmed = all(node.without not in ("", "same") for node in reduction.kept)
    return reduction.minimality == "one-minimal" and reduction.verified is True and (alone or confirmed)


def kinds(seeds: int, nodes: int, shapes: Sequence[str], way: Way) -> Iterator[Row]:
    """Yield a row for every kind of fault, over all shapes, and one for all together."""
    rows: list[Row] = []
    for needed, adjacent in search.KINDS:
        results, started = [], time.perf_counter()
        for shape in shapes:
            for seed in range(seeds):
                with planted(shape, needed, adjacent=adjacent, seed=seed, nodes=nodes) as case:
                    results.append((case, way(case)))
        rows.append(Row(search.kind(needed, adjacent), tuple(results), time.perf_counter() - started))
        yield rows[-1]
    every = tuple(result for row in rows for result in row.results)
    yield Row("all", every, sum(row.seconds for row in rows))


PARTS: Mapping[str, tuple[str, Way]] = {
    "check": ("a check, were unresolved", by_check),
    "engines": ("an engine, seeded by local errors", by_engine),
    "hidden": ("a check; 10 % of the cuts hide the fault", functools.partial(by_check, hiding=0.1)),
    "flaky": ("a check; the fault shows in half of the runs", functools.partial(by_check, rate=0.5, premise=16)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="cases of every shape and kind; 10 make 200 in all")
    parser.add_argument("--nodes", type=int, default=500, help="nodes of a model")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--shapes", nargs="+", choices=search.SHAPES, default=list(search.SHAPES))
    given = parser.parse_args()
    for part in given.part:
        title, way = PARTS[part]
        print(f"\n{title}\n{HEADER}")
        for row in kinds(given.seeds, given.nodes, given.shapes, way):
            print(row, flush=True)


if __name__ == "__main__":
    main()
