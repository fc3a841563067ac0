"""The atlas: ONNX's backend tests and whole networks over engines and versions, diagnosed where they diverge.

    python bench/atlas.py --target "LABEL=SPEC" [--share 4] [--seed 0] [--budget 60] [--networks DIR] --out atlas.jsonl
    python bench/atlas.py --verify docs/atlas/repros --target "LABEL=SPEC" ...
    python bench/atlas_pages.py atlas.jsonl --docs docs/atlas

Every case runs on the reference (`onnxruntime:optimization=none`) and on the target; what is beyond ten times the fp32
floor is a divergence. ONNX ships expected data with its tests: a divergence counts as *wrong* only where the reference
is with these data and the target is not, and for narrow formats only beyond rounding; where nothing is shipped, as with
networks, float64 stands for it. Divergences are diagnosed, each within a budget; where that ends without a culprit, a
network is *undecided*. One line of JSON per case is appended to the file, and cases that it has are not run again. With
--verify every kept repro runs once more, and must fail again. --networks takes NAME.onnx with NAME.npz next to it, as
`python bench/networks DIR atlas --numbered` writes them, and asks every target about one before the next.
"""

import argparse
import dataclasses
import json
import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from backend_nodes import FLOAT64, REFERENCE, Arrays, answer, cases, off, over

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.compare.judgement.within import beyond_fp32, beyond_inner_roundings
from tensortriage.engines.base import Limits
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineCrashed, EngineError, EngineHung, TriageError
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.dtype import Precision
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

NEARER = 10.0
"""The reference is with ONNX's expected data where the target is so many times further from them."""
BENIGN = ("match", "rounding", "input-sensitive")
UNSURE = ("inconclusive", "comparison-unsound")
"""Verdicts that name no culprit: without expected data, nothing but a culprit says that an engine is wrong."""


@dataclasses.dataclass(frozen=True)
class Row:
    """What one engine made of one case; errors are relative, of the worst output."""

    engine: str
    case: str
    ops: tuple[str, ...]
    outcome: str
    """agrees, approximated, wrong, undecided, refused, crashed or hung."""
    detail: str = ""
    error: float = 0.0
    expected_error: float = 0.0
    """Of the target, from the data that ONNX ships."""
    verdict: str = ""
    summary: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", required=True, help="LABEL=SPEC")
    parser.add_argument("--share", type=int, default=1, help="one case of so many")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--match", default="", help="pattern of names of cases")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for one diagnosis")
    parser.add_argument("--networks", type=Path)
    parser.add_argument("--out", type=Path, default=Path("atlas.jsonl"))
    parser.add_argument("--verify", type=Path)
    arguments = parser.parse_args()
    targets = dict(word.split("=", 1) for word in arguments.target)
    if arguments.verify:
        verified(arguments.verify, targets)
        return
    known = {(row["engine"], row["case"]) for row in rows_of(arguments.out)}
    chosen = sorted(cases(1, ""), key=lambda case: case.name)
    random.Random(arguments.seed).shuffle(chosen)
    chosen = [case for case in chosen[:: arguments.share] if re.search(arguments.match, case.name)]
    with arguments.out.open("a") as out, tempfile.TemporaryDirectory() as name:
        for case in networks(arguments.networks) if arguments.networks else backend(chosen, Path(name)):
            asked = {label: spec for label, spec in targets.items() if (label, case.name) not in known}
            truth = truth_of(case) if asked else None
            for label, spec in asked.items() if truth else ():
                row = judged(label, spec, case, truth, arguments.budget, Path(name))
                out.write(json.dumps(dataclasses.asdict(row)) + "\n")
                out.flush()


def rows_of(path: Path) -> list[dict]:
    """Return what a file of results has."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclasses.dataclass(frozen=True)
class Case:
    """A model with its inputs and, where ONNX ships them, the outputs that are expected."""

    name: str
    path: Path
    feed: Arrays
    shipped: Arrays


@dataclasses.dataclass(frozen=True)
class Truth:
    """What a case is judged by: the reference's outputs, and those in float64 where they can be had."""

    model: Model
    right: Arrays
    exact: Arrays

    def expected(self, case: Case) -> Arrays:
        """Return what says who is off: what ONNX ships, else float64."""
        return case.shipped or self.exact


def backend(chosen: list, folder: Path) -> Iterator[Case]:
    """Yield ONNX's own tests whose data are arrays."""
    for case in chosen:
        inputs, expected = case.data_sets[0]
        if not all(isinstance(array, np.ndarray) for array in (*inputs, *expected)):
            continue
        path = folder / "model.onnx"
        fed = {value.name: np.asarray(array) for value, array in zip(case.model.graph.input, inputs, strict=False)}
        try:
            onnx.save(case.model, path)
            feed = frozen(path, fed)
        except TriageError:
            continue  # nothing of ours reads it
        names = [value.name for value in case.model.graph.output]
        yield Case(case.name, path, feed, dict(zip(names, map(np.asarray, expected), strict=False)))


def frozen(path: Path, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Make constants of the inputs that are shapes, axes, scales and the like; return what is left to feed.

    ONNX feeds them; networks hold them as constants, and engines for phones are made for networks.
    """
    graph = Model.load(path).graph
    shapes = [name for name in feed if name in graph.shape_like]
    if not shapes or len(shapes) == len(feed):
        return feed
    model = onnx.load(path)
    for name in shapes:
        model.graph.input.remove(next(value for value in model.graph.input if value.name == name))
        model.graph.initializer.append(onnx.numpy_helper.from_array(feed[name], name))
    onnx.save(model, path)
    return {name: array for name, array in feed.items() if name not in shapes}


def networks(folder: Path) -> Iterator[Case]:
    """Yield the networks of a folder, for which nobody ships expected data."""
    for path in sorted(folder.glob("*.onnx")):
        with np.load(path.with_suffix(".npz")) as data:
            yield Case(f"network {path.stem.lstrip('0123456789_')}", path, dict(data), {})


def truth_of(case: Case) -> Truth | None:
    """Return what a case is judged by; None where the reference itself has nothing to say."""
    try:
        model = Model.load(case.path)
        right, again = (answer(REFERENCE, model, case.feed) for _ in range(2))
    except TriageError:
        return None
    if any(off(right[name], again[name]) for name in right):
        return None  # random on purpose
    try:
        return Truth(model, right, answer(FLOAT64, model, case.feed))
    except (TriageError, KeyError):
        return Truth(model, right, {})


def judged(label: str, spec: str, case: Case, truth: Truth, budget: float, folder: Path) -> Row:
    """Return what an engine makes of a case."""
    ops = tuple(dict.fromkeys(node.op_type for node in truth.model.graph.nodes))
    try:
        found = answer(EngineSpec.parse(spec), truth.model, case.feed)
    except EngineError as error:
        kinds = {EngineCrashed: "crashed", EngineHung: "hung"}
        return Row(label, case.name, ops, kinds.get(type(error), "refused"), error.message)
    except TriageError as error:
        return Row(label, case.name, ops, "refused", error.message)
    right, exact, expected = truth.right, truth.exact, truth.expected(case)
    worst = max(right, key=lambda name: over(right, found, exact, name))
    error = off(right[worst], found.get(worst))
    if not beyond_fp32(over(right, found, exact, worst)):
        return Row(label, case.name, ops, "agrees", error=error)
    theirs, ours = off(expected.get(worst), found.get(worst)), off(expected.get(worst), right[worst])
    verdict, summary = diagnosed(case.path, case.feed, spec, budget, folder)
    rounded = rounding(spec, truth.model, case.feed, right, worst)
    beyond = verdict == "fusion-fault" or beyond_inner_roundings(ratio_of(error, rounded))  # it is one by the same rule
    decided = (not expected or theirs > NEARER * ours) and beyond
    decided = decided and (bool(case.shipped) or verdict not in UNSURE)
    outcome = "approximated" if verdict in BENIGN else "wrong" if decided else "undecided"
    return Row(label, case.name, ops, outcome, f"output '{worst}'", error, theirs, verdict, summary)


def rounding(spec: str, model: Model, feed: Arrays, right: Arrays, name: str) -> float:
    """Return what rounding every result to the target's format costs; 0 for fp32, and where it cannot be had."""
    precision = resolve(EngineSpec.parse(spec)).precision
    if precision is Precision.FP32:
        return 0.0
    try:
        found = answer(EngineSpec.parse(f"emulate:precision={precision.value}"), model, feed)
    except TriageError:
        return 0.0
    error = off(right[name], found.get(name))
    return error if np.isfinite(error) else 0.0


def diagnosed(path: Path, feed: Mapping[str, np.ndarray], spec: str, budget: float, folder: Path) -> tuple[str, str]:
    """Return verdict and summary of a diagnosis within a budget."""
    np.savez(folder / "feed.npz", **feed)
    with tempfile.TemporaryDirectory(dir=folder) as case:
        request = DiagnoseRequest(
            model=path,
            target=spec,
            feeding=FeedRequest(paths=(str(folder / "feed.npz"),)),
            case=Path(case) / "case",
            repro=False,
            budget_seconds=budget,
            limits=Limits(60.0, 30.0),
        )
        try:
            verdict = diagnose(request)
        except TriageError as error:
            return f"error[{error.slug}]", error.message
        return str(verdict.verdict), verdict.summary


def verified(folder: Path, targets: Mapping[str, str]) -> None:
    """Run every repro of a folder on the engine of its name; print what still diverges."""
    for path in sorted(folder.glob("*/*.onnx")):
        spec = targets.get(path.parent.name)
        if spec is None:
            continue
        with np.load(path.with_suffix(".npz")) as data:
            feed = dict(data)
        model = Model.load(path)
        right = answer(REFERENCE, model, feed)
        try:
            found = answer(EngineSpec.parse(spec), model, feed)
        except EngineError as error:
            print(f"{path.parent.name:24} {path.stem:60} {type(error).__name__}: {error.message[:100]}")
            continue
        worst = max(right, key=lambda name: over(right, found, {}, name))
        fails = beyond_fp32(over(right, found, {}, worst))
        told = f"{'fails' if fails else 'PASSES'}, relative error {off(right[worst], found.get(worst)):.2g}"
        print(f"{path.parent.name:24} {path.stem:60} {told}")


if __name__ == "__main__":
    main()
