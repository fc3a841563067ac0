"""How does the time of every graph algorithm grow with the number of nodes? At 1k, 10k and 50k nodes, with exponents.

    python bench/large_graphs.py [--nodes 1000 10000 50000] [--graphs residual blocks fan] [--steps WORD ...]

Three generated graphs: `residual` (a chain with a skip connection every four nodes), `blocks` (a transformer block of
26 nodes, repeated, with weights of its own each), `fan` (one value that a third of the nodes use, summed by a tree).
The exponent is the slope of log seconds over log nodes, between the two largest sizes and over all of them: 1 is
linear. Each step runs once, commands in a process of their own, and what counts is the processor's time.
`bookkeeping` is what a search takes per check beside its oracle, `candidate` what it takes to cut a piece of half of
the nodes, and one of 20.
"""

import argparse
import contextlib
import cProfile
import dataclasses
import functools
import math
import pstats
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from compiled import compile_packages
from onnx import TensorProto, helper, numpy_helper

WIDTH = 4
SIZES = (1000, 10_000, 50_000)
TRIAGE = [sys.executable, "-c", "from tensortriage.cli import main; main()"]
BLOCK = """
    ReduceMean:mean:x Sub:center:x,mean Mul:square:center,center ReduceMean:var:square Add:eps:var,#s Sqrt:std:eps
    Div:norm:center,std MatMul:q:norm,#w MatMul:k:norm,#w MatMul:v:norm,#w Transpose:turned:k MatMul:scores:q,turned
    Mul:scaled:scores,#s Softmax:weights:scaled MatMul:mixed:weights,v MatMul:projected:mixed,#w Add:added:x,projected
    MatMul:up:added,#w Add:biased:up,#b Mul:cut:biased,#s Erf:erf:cut Add:one:erf,#s Mul:gelu:biased,one
    MatMul:down:gelu,#w Add:moved:down,#b Add:out:added,moved
"""
"""Nodes of a block as operator, result and operands; ``#w``, ``#b`` and ``#s`` are a matrix, a row and a number."""
SHAPES = {"w": (WIDTH, WIDTH), "b": (WIDTH,), "s": ()}


class Writer:
    """Nodes and weights of a graph in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[TensorProto] = []
        self._random = np.random.default_rng(0)

    def node(self, op_type: str, inputs: Sequence[str], output: str = "") -> str:
        """Add a node and return its result."""
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [output or f"{name}_out"], name=name))
        return self.nodes[-1].output[0]

    def weight(self, kind: str) -> str:
        """Add a weight of a kind of `SHAPES` and return its name."""
        name = f"{kind}_{len(self.weights)}"
        values = np.asarray(self._random.standard_normal(SHAPES[kind]), np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name


def residual(count: int) -> Writer:
    graph, last = Writer(), "x"
    while len(graph.nodes) < count:
        entry = last
        for op_type in ("Mul", "Add", "Tanh"):
            last = graph.node(op_type, [last] if op_type == "Tanh" else [last, graph.weight("b")])
        last = graph.node("Add", [last, entry])
    graph.node("Identity", [last], "y")
    return graph


def blocks(count: int) -> Writer:
    graph, last = Writer(), "x"
    while len(graph.nodes) < count:
        places = {"x": last}
        for text in BLOCK.split():
            op_type, result, operands = text.split(":")
            names = [graph.weight(o[1:]) if o.startswith("#") else places[o] for o in operands.split(",")]
            places[result] = last = graph.node(op_type, names)
            if op_type == "Transpose":
                graph.nodes[-1].attribute.append(helper.make_attribute("perm", [1, 0]))
    graph.node("Identity", [last], "y")
    return graph


def fan(count: int) -> Writer:
    graph = Writer()
    hub = graph.node("Tanh", ["x"])
    leaves = [graph.node("Mul", [hub, graph.weight("b")]) for _ in range(count // 2)]
    while len(leaves) > 1:
        pairs = [leaves[index : index + 2] for index in range(0, len(leaves), 2)]
        leaves = [graph.node("Add", pair) if len(pair) == 2 else pair[0] for pair in pairs]
    graph.node("Identity", leaves, "y")
    return graph


GRAPHS: Mapping[str, Callable[[int], Writer]] = {"residual": residual, "blocks": blocks, "fan": fan}


def write(kind: str, count: int, folder: Path) -> Path:
    """Write a generated model and return its file."""
    made = GRAPHS[kind](count)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (WIDTH, WIDTH)) for name in "xy"]
    graph = helper.make_graph(made.nodes, kind, ends[:1], ends[1:], made.weights)
    path = folder / f"{kind}_{count}.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def steps(path: Path) -> Iterator[tuple[str, Callable[[], float | None]]]:
    """Yield what is measured; a step that returns a number says itself how long it took."""
    from tensortriage.compare.alignment.align import align
    from tensortriage.model.cutting.explode import explode
    from tensortriage.model.io.parse import read_message
    from tensortriage.model.lint.finding import Aims
    from tensortriage.model.model import Model
    from tensortriage.model.shape_inference.value_specs import value_specs
    from tensortriage.model.similarity.diff import diff
    from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
    from tensortriage.reduce.pieces.pieces import Pieces
    from tensortriage_inspect.summary import summary_of
    from tensortriage_polygraphy.lint.rules import lint

    yield "`inspect model`", functools.partial(inspect, path)
    yield "`debug reduce`, 3 checks", functools.partial(three_checks, path)
    model = Model.load(path)
    yield "load", lambda: _nothing(Model.load(path))
    yield "index", lambda: _nothing(model.graph.shape_like)
    yield "depths", lambda: _nothing(model.graph.depth(model.graph.nodes[-1]))
    yield "fingerprint", lambda: _nothing(model.fingerprint)
    message = read_message(path)
    yield "lint", lambda: _nothing(list(lint(model, message, Aims())))
    specs = value_specs(model, refine=True)
    yield "specs", lambda: _nothing(value_specs(model, refine=True))
    yield "summary", lambda: _nothing(summary_of(message, path, path.parent))
    yield "explode", lambda: _nothing(explode(model, specs=specs))
    made = [specs[name] for name in model.graph.values]
    yield "align", lambda: _nothing(align(made, made[::-1]))
    other = _changed(model)
    yield "diff", lambda: _nothing(diff(model, other))
    yield "mark+save", lambda: _nothing(mark_outputs(model, markable(model)).save(path.with_suffix(".marked")))
    pieces = Pieces(model, specs=specs)
    yield "pieces", lambda: _nothing(Pieces(model, specs=specs))
    half = pieces.nodes(pieces.items[len(pieces.items) // 4 : len(pieces.items) * 3 // 4])
    yield "candidate, half", lambda: _nothing(pieces.cut(half))
    few = pieces.nodes(pieces.items[len(pieces.items) // 2 :][:20])
    yield "candidate, 20", lambda: _nothing(pieces.cut(few))
    yield "bookkeeping", lambda: bookkeeping(pieces, needed=1)
    yield "bookkeeping, 3", lambda: bookkeeping(pieces, needed=3)


def _nothing(_result: object) -> None:
    return None


def _changed(model: object) -> object:
    """Return a copy of a model of which one node in the middle is another operator."""
    from tensortriage.model.model import Model

    assert isinstance(model, Model)
    clone = model.clone().ir
    nodes = [node for node in clone.graph if node.op_type == "Add"]
    nodes[len(nodes) // 2].op_type = "Sub"
    return Model.from_ir(clone)


def bookkeeping(pieces: object, *, needed: int) -> float:
    """Return the seconds per check that a search takes beside its oracle, which knows the answer at once."""
    from tensortriage.reduce.pieces.piece_search import Search
    from tensortriage.reduce.pieces.pieces import Pieces
    from tensortriage.runs.check_cache import CheckCache
    from tensortriage.search.problem import CandidateOutcome, OracleVerdict

    assert isinstance(pieces, Pieces)
    wanted = frozenset(random.Random(0).sample(pieces.items, needed))
    spent = 0.0

    class Knows:
        def __call__(self, candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
            nonlocal spent
            started = time.process_time()
            same = wanted.issubset(candidate)
            spent += time.process_time() - started
            return OracleVerdict(CandidateOutcome.SAME if same else CandidateOutcome.PASS, "wrong" if same else "")

        def expect(self, runs: object) -> None:
            pass

    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(CheckCache(Path(folder) / "checks.sqlite")) as cache,
    ):
        search = Search(pieces=pieces, oracle=Knows(), identity=lambda: "bench", cache=cache)
        started = time.process_time()
        result = search.run()
        seconds = time.process_time() - started - spent
    assert set(result.kept) == wanted
    return seconds / result.checks


def inspect(path: Path) -> float:
    return command(["inspect", "model", str(path)], path.parent)


def three_checks(path: Path) -> float:
    """Return what `debug reduce` takes from its start to the third answer of a check that takes no time."""
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    words = ["debug", "reduce", str(path), "-o", "out.onnx", "--max-checks", "3", "--check", "false"]
    return command(words, folder, codes=(0, 1, 2))


def command(words: Sequence[str], folder: Path, codes: Sequence[int] = (0,)) -> float:
    """Return the processor time of a command and all its children; a busy machine blurs it less than the wall's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*TRIAGE, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@dataclasses.dataclass(frozen=True)
class Clock:
    """Measures steps, and prints where the time of one went when that is needed."""

    profile: bool

    def __call__(self, action: Callable[[], float | None]) -> float:
        """Return the seconds of a step."""
        profiler = cProfile.Profile()
        if self.profile:
            profiler.enable()
        started = time.process_time()
        told = action()
        seconds = time.process_time() - started
        if self.profile:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        return seconds if told is None else told


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of a line through the logarithms, by least squares."""
    across, up = np.log(sizes), np.log(np.maximum(seconds, 1e-6))
    return float(np.polyfit(across, up, 1)[0]) if len(sizes) > 1 else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--graphs", nargs="+", choices=tuple(GRAPHS), default=tuple(GRAPHS))
    parser.add_argument("--steps", nargs="+", default=[], metavar="WORD", help="only steps whose name has such a word")
    parser.add_argument("--profile", action="store_true", help="print where the time of each step went")
    given = parser.parse_args()
    compile_packages()
    clock = Clock(given.profile)
    for kind in given.graphs:
        times: dict[str, list[float]] = {}
        with tempfile.TemporaryDirectory() as name:
            for count in given.nodes:
                path = write(kind, count, Path(name))
                for step, action in steps(path):
                    if not given.steps or any(word in step for word in given.steps):
                        times.setdefault(step, []).append(clock(action))
                        print(f"# {kind} {count} {step}: {times[step][-1]:.4f} s", file=sys.stderr, flush=True)
        print(f"\n| {kind} | {' | '.join(map(str, given.nodes))} | exponent, last two | all |")
        print("|---|" + "---|" * (len(given.nodes) + 2))
        for step, seconds in times.items():
            cells = " | ".join(f"{value:.3g} s" if value >= 0.1 else f"{value * 1e3:.2g} ms" for value in seconds)
            slopes = exponent(given.nodes[-2:], seconds[-2:]), exponent(given.nodes, seconds)
            print(f"| {step} | {cells} | {slopes[0]:.2f} | {slopes[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
