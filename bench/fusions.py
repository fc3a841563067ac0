"""Does `triage diagnose` find ops that are wrong only together? Planted fusions of two and three ops, one at a time.

    python bench/fusions.py
    python bench/fusions.py --models encoder --patterns pair --each 3 --no-plan
    python bench/fusions.py --precision fp16 --amounts 1.002 1.005 1.01 1.02 1.05 1.1

A pattern is a set of ops wired to each other: two neighbours, a chain of three, or an op with one far behind it that
takes its result past others (a residual). With --no-plan the engine does not tell what it fuses, so that windows have
to find it. Right is: `fusion-fault`, exactly the planted ops, and breakers that restore the answer. Prints a line per
fault and the shares; faults that the outputs do not show are left out. With --precision every result is rounded as
well, and small amounts say how far beyond rounding a fusion has to be for it to be called a fault.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx

from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_testing import FaultyEngine, conv_net, encoder, feed_for, mlp, residual_dag, save_model

MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "encoder": lambda: encoder(layers=2, width=64, heads=4, tokens=16, batch=2),
    "conv_net": lambda: conv_net(blocks=3),
    "mlp": lambda: mlp(),
    "residual_dag": lambda: residual_dag(60),
}
SHOWN = 1e-3
"""Relative error of an output from which a fault counts as visible."""


def pairs(graph: Graph) -> Iterator[tuple[Node, ...]]:
    """Yield an op and one that uses its result."""
    for node in plain(graph):
        for user in graph.consumers(node.outputs[0])[:1]:
            yield node, user


def triples(graph: Graph) -> Iterator[tuple[Node, ...]]:
    """Yield chains of three."""
    for node, user in pairs(graph):
        for last in graph.consumers(user.outputs[0])[:1]:
            yield node, user, last


def residuals(graph: Graph) -> Iterator[tuple[Node, ...]]:
    """Yield an op whose result is used several times, and its last user."""
    for node in plain(graph):
        users = graph.consumers(node.outputs[0])
        if len(users) > 1 and users[-1].index > node.index + 3:
            yield node, users[-1]


PATTERNS = {"pair": pairs, "triple": triples, "residual": residuals}


def plain(graph: Graph) -> list[Node]:
    """Return the ops whose results a fault may be in."""
    return [node for node in graph.nodes if node.op_type != "Constant" and node.outputs[0] not in graph.shape_like]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--patterns", nargs="+", default=list(PATTERNS))
    parser.add_argument("--each", type=int, default=2, help="faults per model and pattern")
    parser.add_argument("--no-plan", action="store_true")
    parser.add_argument("--precision", default="fp32", help="fp16 or bf16: every result is rounded to it")
    parser.add_argument("--amounts", nargs="+", default=["1.5"], help="factors by which results are wrong")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for amount in arguments.amounts:
        right = shown = 0
        common = {"kind": "scale", "amount": amount, "precision": arguments.precision}
        common |= {"plan": "false"} if arguments.no_plan else {}
        for name in arguments.models:
            for pattern in arguments.patterns:
                for ok, line in study(name, pattern, arguments.each, arguments.seed, common):
                    shown += 1
                    right += ok
                    print(f"{'ok  ' if ok else 'MISS'} {amount:5} {name:13} {pattern:9} {line}", flush=True)
        print(f"{right} of {shown} right")


def study(name: str, pattern: str, each: int, seed: int, common: Mapping[str, str]) -> Iterator[tuple[bool, str]]:
    """Plant some faults of a pattern in a model, diagnose each, and yield whether it went well and a line."""
    with tempfile.TemporaryDirectory() as folder:
        proto = MODELS[name]()
        path = save_model(proto, Path(folder) / "model.onnx")
        feed = feed_for(proto)
        np.savez(Path(folder) / "feed.npz", **feed)
        (Path(folder) / "faulty.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
        found = [*PATTERNS[pattern](Model.load(path).graph)]
        random.Random(seed).shuffle(found)
        done = 0
        for number, nodes in enumerate(found):
            options = {**common, "node": nodes[0].name, "fused_with": "+".join(node.name for node in nodes[1:])}
            if not visible(path, feed, options):
                continue
            yield asked(Path(folder), number, options, {node.name for node in nodes})
            done += 1
            if done == each:
                return


def visible(path: Path, feed: Mapping[str, np.ndarray], options: Mapping[str, str]) -> bool:
    """Say whether the fault shows at an output, rounding aside."""
    exact = {**options, "precision": "fp32"}
    right, wrong = (FaultyEngine().compile(path, given).run(feed) for given in ({}, exact))
    return any(
        float(np.sqrt(np.mean((wrong[name] - array) ** 2) / (np.mean(array**2) + 1e-30))) > SHOWN
        for name, array in right.items()
    )


def asked(folder: Path, number: int, options: Mapping[str, str], planted: set[str]) -> tuple[bool, str]:
    """Diagnose one fault."""
    started = time.perf_counter()
    verdict = diagnose(
        DiagnoseRequest(
            model=folder / "model.onnx",
            target=f"script:{folder / 'faulty.py'}," + ",".join(f"{key}={value}" for key, value in options.items()),
            feeding=FeedRequest(paths=(str(folder / "feed.npz"),)),
            case=folder / f"case{number}",
        )
    )
    named = {culprit.node for culprit in verdict.culprits}
    ok = verdict.verdict == "fusion-fault" and named == planted and bool(verdict.breakers)
    cost = f"{verdict.cost.builds} builds, {time.perf_counter() - started:.1f} s"
    note = "" if ok else f" planted {sorted(planted)}, named {sorted(named)}: {verdict.summary}"
    return ok, f"{verdict.verdict:13} {len(planted)} ops, {len(verdict.breakers)} breakers, {cost}{note}"


if __name__ == "__main__":
    main()
