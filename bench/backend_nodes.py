"""ONNX's own backend tests through reference and real engines: every divergence that would be called a fault.

    python bench/backend_nodes.py
    python bench/backend_nodes.py --targets openvino:precision=fp32 --share 8 --match softmax
    python bench/backend_nodes.py --diagnose 20

Models and data are those of onnx.backend.test (every operator at every opset that changed it). Each runs on the
reference (`onnxruntime:optimization=none`) and on every target; outputs beyond ten times the fp32 noise floor are
divergences, as in `diagnose`, and each is compared with the expected data that ONNX ships, which says who is off. With
--diagnose the first divergences go through the whole of `diagnose` as well. Prints one line per divergence and counts.
"""

import argparse
import collections
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx

from tensortriage.compare.judgement.relative_error import error_of, least_floor
from tensortriage.compare.judgement.within import beyond_fp32
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, TriageError
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.observation.runner import Runner
from tensortriage.runs.workspace import Workspace
from tensortriage.values.dtype import Precision
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

REFERENCE = EngineSpec.parse("onnxruntime:optimization=none")
FLOAT64 = EngineSpec.parse("float64")
TARGETS = ("onnxruntime:optimization=basic", "onnxruntime:optimization=extended", "onnxruntime",
           "openvino:precision=fp32")  # fmt: skip
Arrays = Mapping[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--share", type=int, default=1, help="take one case of so many, by name")
    parser.add_argument("--match", default="", help="part of the names of cases")
    parser.add_argument("--diagnose", type=int, default=0, help="divergences to diagnose per target")
    arguments = parser.parse_args()
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    left = dict.fromkeys(arguments.targets, arguments.diagnose)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in cases(arguments.share, arguments.match):
            for target, outcome, detail in judged(case, arguments.targets, folder):
                counts[target, outcome] += 1
                if outcome == "divergence":
                    print(f"{target:34} {case.name:60} {detail}", flush=True)
                    if left[target] > 0:
                        left[target] -= 1
                        print(f"    {diagnosed(case, target, folder)}", flush=True)
    for (target, outcome), count in sorted(counts.items()):
        print(f"{target:34} {outcome:24} {count:5}")


def cases(share: int, match: str) -> Iterator[object]:
    """Yield the cases that carry a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, about overflows that ONNX's authors want
        from onnx.backend.test.case.model import collect_testcases as collect_models
        from onnx.backend.test.case.node import collect_testcases as collect_nodes

        found = {case.name: case for case in (*collect_nodes(None), *collect_models()) if case.model is not None}
    for name, case in found.items():
        if match in name and zlib.crc32(name.encode()) % share == 0:
            yield case


def judged(case, targets, folder: Path) -> Iterator[tuple[str, str, str]]:  # type: ignore[no-untyped-def] # ONNX's class
    """Yield what every target makes of a case: its outcome, and the figures of a divergence."""
    path = folder / "model.onnx"
    onnx.save(case.model, path)
    inputs, expected = case.data_sets[0]
    names = [value.name for value in case.model.graph.output]
    if not all(isinstance(array, np.ndarray) for array in (*inputs, *expected)):
        return  # sequences and optionals
    feed = {value.name: np.asarray(array) for value, array in zip(case.model.graph.input, inputs, strict=False)}
    try:
        model = Model.load(path)
        right = answer(REFERENCE, model, feed)
        again = answer(REFERENCE, model, feed)
    except TriageError:
        return  # the reference cannot run it
    if any(off(right[name], again[name]) for name in right):
        return  # random on purpose
    try:
        exact = answer(FLOAT64, model, feed)
    except (TriageError, KeyError):
        exact = {}
    shipped = dict(zip(names, map(np.asarray, expected), strict=False))
    for target in targets:
        try:
            found = answer(EngineSpec.parse(target), model, feed)
        except EngineError as error:
            yield target, type(error).__name__, error.message
            continue
        except TriageError as error:
            yield target, error.slug, error.message
            continue
        worst = max(right, key=lambda name: over(right, found, exact, name))
        ratio = over(right, found, exact, worst)
        detail = (
            f"{worst}: target {off(right[worst], found[worst]):.1e} from the reference; from ONNX's expected data: "
            f"reference {off(shipped.get(worst), right[worst]):.1e}, target {off(shipped.get(worst), found[worst]):.1e}"
        )
        yield target, "divergence" if beyond_fp32(ratio) else "agrees", detail


def answer(spec: EngineSpec, model: Model, feed: Arrays) -> Arrays:
    """Run a model once on an engine built again."""
    with Workspace() as workspace, Runner(spec, model, workspace=workspace, limits=Limits(60.0, 30.0)) as runner:
        return {name: np.array(array) for name, array in runner.run(feed).items()}


def over(right: Arrays, found: Arrays, exact: Arrays, name: str) -> float:
    """Return the error of an output over its floor: the distance of the reference from float64, at least a rounding."""
    error = off(right[name], found.get(name))
    narrow = {np.dtype(np.float16): Precision.FP16}.get(right[name].dtype, Precision.FP32)
    narrow = Precision.BF16 if right[name].dtype.name == "bfloat16" else narrow
    floor = least_floor(narrow) if right[name].dtype.kind in "fV" else 0.0
    measured = off(right[name], exact[name]) if name in exact else 0.0
    floor = max(floor, measured if np.isfinite(measured) else 0.0)
    return 0.0 if error == 0.0 else error / floor if floor else float("inf")


def off(right: np.ndarray | None, found: np.ndarray | None) -> float:
    """Return the relative error; inf for other shapes or kinds."""
    if right is None or found is None or right.shape != found.shape:
        return float("inf")
    if right.dtype != found.dtype:
        try:
            found = found.astype(right.dtype)
        except (TypeError, ValueError):
            return float("inf")
    return error_of(measure(right, found))


def diagnosed(case, target: str, folder: Path) -> str:  # type: ignore[no-untyped-def] # ONNX's class
    """Return what `diagnose` says of a case."""
    inputs, _ = case.data_sets[0]
    feed = {value.name: np.asarray(array) for value, array in zip(case.model.graph.input, inputs, strict=False)}
    np.savez(folder / "feed.npz", **feed)
    onnx.save(case.model, folder / "model.onnx")
    request = DiagnoseRequest(
        model=folder / "model.onnx",
        target=target,
        feeding=FeedRequest(paths=(str(folder / "feed.npz"),)),
        case=folder / "cases" / f"{case.name}-{target.partition(':')[0]}",
        repro=False,
    )
    try:
        verdict = diagnose(request)
    except TriageError as error:
        return f"error[{error.slug}]: {error.message}"
    return f"{verdict.verdict}: {verdict.summary}"


if __name__ == "__main__":
    main()
