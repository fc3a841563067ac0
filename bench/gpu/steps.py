"""The GPU proof, step by step: each runs the command line (or the library) on a real TensorRT and notes the outcome.

    python bench/gpu/steps.py OUT STEP...

Every step writes OUT/STEP.json: ``ok``, ``seconds``, ``figures`` and ``notes``. A step that fails says so there and the
others go on. The engine is ``tensorrt`` behind $TRIAGE_TRT_PYTHON; TRIAGE_GPU_TARGET replaces it for a rehearsal.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from figures import Figures, first_input, least_sqnr_db, number, require, study_figures, verdict_figures

SMALL = ("cnn", "transformer", "depthwise", "mask", "quantized", "dynamic")
TIMEOUT = "400"


def target(**options: str) -> str:
    """Return the spec of the engine."""
    if rehearsal := os.environ.get("TRIAGE_GPU_TARGET"):
        return rehearsal
    words = {"tactic_sources": "-CUDNN", **options}
    if worker := os.environ.get("TRIAGE_TRT_PYTHON"):
        words["worker"] = worker
    return "tensorrt:" + ",".join(f"{key}={value}" for key, value in words.items())


class Step:
    """One step in progress: where it works, and the commands it ran."""

    def __init__(self, out: Path, name: str) -> None:
        self.folder = (out / name).absolute()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.nets = (out / "nets").absolute()
        self.commands: list[str] = []

    def triage(self, *words: str, codes: tuple[int, ...] = (0,)) -> tuple[int, Any]:
        """Run ``triage ... --json``; return its exit code and document."""
        self.commands.append("triage " + " ".join(words))
        head = words.index("--check") if "--check" in words else len(words)
        done = subprocess.run(
            [sys.executable, "-c", "from tensortriage.cli import main; main()", *words[:head], "--json", *words[head:]],
            cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        (self.folder / f"{len(self.commands)}.log").write_text(f"{self.commands[-1]}\n{done.stdout}\n{done.stderr}")
        if done.returncode not in codes:
            raise AssertionError(f"exit code {done.returncode} of {self.commands[-1]}: {done.stderr[-1500:]}")
        return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None

    def net(self, name: str) -> tuple[str, str, str]:
        """Return a network and its inputs as words of a command line."""
        return str(self.nets / f"{name}.onnx"), "--inputs", str(self.nets / f"{name}.npz")


def conformance(step: Step) -> Figures:
    """check_engine_conformance passes."""
    from tensortriage.engines.registry import create
    from tensortriage.engines.spec import EngineSpec
    from tensortriage.testing import check_engine_conformance

    spec = EngineSpec.parse(target(precision="fp32"))
    report = check_engine_conformance(create(spec), spec.options)
    return {"passed": len(report.passed), "refused": dict(report.refused)}


def small(step: Step) -> Figures:
    """FP32 within tolerance of ONNX Runtime on six networks."""
    figures: Figures = {}
    for name in SMALL:
        words = {"profile.x": "1x32:4x32:8x32"} if name == "dynamic" else {}
        precision = "int8" if name == "quantized" else "fp32"
        started = time.perf_counter()
        code, document = step.triage(
            "run", *step.net(name), "--target", target(precision=precision, **words), "--timeout", TIMEOUT, codes=(0, 1)
        )
        rows = [row for item in document["comparisons"] for row in item["comparison"]["rows"]]
        figures[name] = {
            "within": code == 0,
            "sqnr_db": [round(number(row["metrics"]["sqnr_db"]), 1) for row in rows],
            "ratio": [round(number(row["judgement"]["ratio"]), 3) for row in rows],
            "seconds": round(time.perf_counter() - started, 1),
            "outcome": {k: v["kind"] for k, v in document["outcomes"].items()},
        }
    require(all(row["within"] for row in figures.values()), figures)
    return figures


def plan(step: Step) -> Figures:
    """The plan names ONNX nodes; precision asked against precision built."""
    from tensortriage.engines.registry import create
    from tensortriage.engines.spec import EngineSpec

    figures: Figures = {}
    for name, precision in (("cnn", "fp16"), ("transformer", "fp16"), ("quantized", "int8")):
        spec = EngineSpec.parse(target(precision=precision))
        session = create(spec).compile(step.nets / f"{name}.onnx", spec.options)
        session.run(dict(np.load(step.nets / f"{name}.npz")))
        built = session.plan()
        assert built is not None
        if spec.name == "tensorrt":  # what the inspector itself says, for tests of the reading of it
            (step.folder / f"{name}.json").write_text(json.dumps(session.answer("inspector")[0], indent=1))
            (step.folder / f"{name}.info.json").write_text(json.dumps(dict(session.info), indent=1, default=str))
        session.close()
        placed = {node for region in built.regions for node in region.nodes}
        precisions = sorted({region.precision for region in built.regions})
        figures[name] = {"regions": len(built.regions), "nodes_placed": len(placed), "precisions": precisions}
    code, document = step.triage("inspect", "plan", str(step.nets / "cnn.onnx"), "--target", target(precision="fp16"),
                                 codes=(0, 1))  # fmt: skip
    figures["audit"] = {"exit_code": code, "regions": len(document["regions"])}
    require(all(row["nodes_placed"] for name, row in figures.items() if name != "audit"), figures)
    return figures


def transformer(step: Step) -> Figures:
    """The 4-block transformer on FP16: verdict, what marking moved, what differs between builds."""
    words = (*step.net("transformer4"), "--target", target(precision="fp16"), "--builds", "2", "--timeout", TIMEOUT)
    _, report = step.triage("diagnose", *words, codes=(0, 1, 4))
    figures = verdict_figures(report)
    figures["between_builds"] = [s["evidence"] for s in report["verdict"]["steps"] if "build to build" in s["question"]]
    return figures


def builds(step: Step) -> Figures:
    """Builds of the 4-block transformer: as deployed, with tactics recorded and given back, with one timing cache."""
    words = (*step.net("transformer4"), "--timeout", TIMEOUT)
    spec = target(precision="fp16")
    _, free = step.triage("debug", "build", *words, "--target", spec, "--until", "4", "--no-tactics", "--case", "free",
                          codes=(0, 4))  # fmt: skip
    _, study = step.triage("debug", "build", *words, "--target", spec, "--until", "2", codes=(0, 4))
    shared = target(precision="fp16", timing_cache=str(step.folder / "timing.cache"))
    _, cached = step.triage("debug", "build", *words, "--target", shared, "--until", "3", "--no-tactics", "--case",
                            "cached", codes=(0, 4))  # fmt: skip
    figures = {
        "as_deployed": study_figures(free),
        "recorded": study_figures(study),
        "one_timing_cache": study_figures(cached),
    }
    require(free["distinct_outputs"] > 1, figures)
    return figures


def pinned(step: Step) -> Figures:
    """Tactics of a CNN recorded and given back: bit-equal outputs."""
    _, study = step.triage("debug", "build", *step.net("cnn"), "--target", target(precision="fp16"), "--until", "2",
                           "-o", "pinned.engine", "--save-tactics", "tactics.json", "--timeout", TIMEOUT)  # fmt: skip
    figures = study_figures(study)
    _, record = step.triage("inspect", "tactics", "tactics.json")
    figures["choices"] = len(record["choices"])
    figures["engine_bytes"] = (step.folder / "pinned.engine").stat().st_size
    loaded = target(precision="fp16", load_engine=str(step.folder / "pinned.engine"))
    code, _ = step.triage("run", *step.net("cnn"), "--target", loaded, "--rtol", "0.05", "--atol", "0.05", codes=(0, 1))
    figures["pinned_engine_runs"] = code == 0
    require(study["pinned"]["same_outputs"] and study["pinned"]["again_same"], figures)
    return figures


def guilty(step: Step) -> Figures:
    """Builds called bad when less exact than others: the tactics that do it are found by giving them to builds."""
    spec = target(precision="fp16")
    words = (*step.net("cnn1"), "--timeout", TIMEOUT)
    _, first = step.triage("debug", "build", *words, "--target", spec, "--until", "3", "--no-pin", "--case", "first")
    errors = {}
    for trial in first["trials"]:
        engine = str(step.folder / "first" / trial["files"]["engine"])
        _, document = step.triage("run", *words, "--target", target(precision="fp16", load_engine=engine), codes=(0, 1))
        rows = [row for item in document["comparisons"] for row in item["comparison"]["rows"]]
        errors[trial["name"]] = max(number(row["metrics"]["max_abs_error"]) for row in rows)
    limit = (min(errors.values()) + max(errors.values())) / 2
    loaded = target(precision="fp16", load_engine=str(step.folder / "polygraphy_debug.engine"))
    check = (sys.executable, "-c", "from tensortriage.cli import main; main()", "run", *words, "--target", loaded)
    _, study = step.triage("debug", "build", *words, "--target", spec, "--max-builds", "8", "--check", *check, "--atol",
                           str(limit), "--rtol", "0", codes=(0, 4))  # fmt: skip
    figures = {"max_abs_error": errors, "limit": limit, **study_figures(study)}
    require(study["good"] and study["bad"], figures)
    require(study["blame"] and study["blame"]["guilty"] and study["blame"]["cured"], figures)
    return figures


def overflow(step: Step) -> Figures:
    """A planted overflow diagnosed: NaN or Inf with its origin."""
    _, report = step.triage("diagnose", *step.net("overflowing"), "--target", target(precision="fp16"), "--timeout",
                            TIMEOUT, codes=(0, 1, 4))  # fmt: skip
    figures = verdict_figures(report)
    remedy = report["verdict"]["remedy"] or {}
    figures["remedy"] = {key: remedy.get(key) for key in ("summary", "nodes", "error_after")}
    told = figures["verdict"] in ("range-overflow", "non-finite")
    told = told or (figures["verdict"] == "intermittent" and "the failing ones overflow" in figures["summary"])
    require(told and remedy.get("kind") == "keep-fp32", figures)
    return figures


def kept(step: Step) -> Figures:
    """The planted overflow is cured by keeping the nodes around it in float32."""
    from tensortriage.engines.registry import create
    from tensortriage.engines.spec import EngineSpec

    figures: Figures = {}
    feed = dict(np.load(step.nets / "overflowing.npz"))
    for name, nodes in (("predicted", (3, 4)), ("wider", (2, 3, 4, 5))):
        words = [f"/layer.{n}/{op}" for n in nodes for op in ("Conv", "Relu")]
        spec = EngineSpec.parse(target(precision="fp16", kept="+".join(words)))
        session = create(spec).compile(step.nets / "overflowing.onnx", spec.options)
        (output,) = session.run(feed).values()
        built = session.plan()
        precisions = {} if built is None else {region.name: region.precision for region in built.regions}
        if spec.name == "tensorrt":
            (step.folder / f"{name}.json").write_text(json.dumps(session.answer("inspector")[0], indent=1))
            (step.folder / f"{name}.info.json").write_text(json.dumps(dict(session.info), indent=1, default=str))
        figures[name] = {"kept": words, "finite": bool(np.isfinite(output).all()), "precisions": precisions}
        session.close()
    require(figures["predicted"]["finite"], figures)
    return figures


def reduce(step: Step) -> Figures:
    """The planted overflow reduced to a minimal network on the real engine."""
    engine = target(precision="fp16", timing_cache=str(step.folder / "timing.cache"))
    words = (*step.net("overflowing"), "--target", engine, "--timeout", TIMEOUT, "--shrink-budget", "30")
    _, reduction = step.triage("debug", "reduce", *words, "-o", "reduced.onnx", codes=(0, 4))
    figures = {key: reduction[key] for key in ("nodes_before", "checks", "minimality", "verified")}
    figures["kept"] = [node["op_type"] + " " + node["name"] for node in reduction["kept"]]
    require(reduction["verified"], figures)
    return figures


def precision(step: Step) -> Figures:
    """The fewest nodes in float32 for a goal that FP16 misses, confirmed by builds, and once more by a fresh one."""
    examples = Path(__file__).resolve().parents[2] / "examples"
    positions = [str(examples / f"digits_vit_positions.{kind}") for kind in ("onnx", "npz")]
    metric = str(examples / "accuracy.py")
    cases = {
        "overflowing": (step.net("overflowing"), ["--sqnr", "53"], 52.0),
        "positions": ((positions[0], "--inputs", positions[1]), ["--metric", metric], 30.0),
        "transformer4": (step.net("transformer4"), ["--sqnr", "55"], 54.0),
    }
    figures: Figures = {}
    for name, (net, goal, least_db) in cases.items():
        words = [*net, "--target", target(precision="fp16"), "--timeout", TIMEOUT]
        _, before = step.triage("run", *words, codes=(0, 1))
        _, plan = step.triage("debug", "precision", *words, *goal, "-o", f"{name}.onnx", "--case", name)
        again = ["--target", target(precision="mixed"), "--target-model", f"{name}.onnx", "--timeout", TIMEOUT]
        _, after = step.triage("run", *net, *again, codes=(0, 1))
        figures[name] = {
            "fp16_sqnr_db": least_sqnr_db(before),
            "kept": len(plan["kept"]),
            "candidates": plan["candidates"],
            "first": plan["kept"][:6],
            "builds": plan["builds"],
            "minimality": plan["minimality"],
            "error": {key: plan["error"][key] for key in ("goal", "as_asked", "predicted", "measured", "metric")},
            "low_share": round(plan["low_share"], 3),
            "fresh_build_sqnr_db": least_sqnr_db(after),
            "least_db": least_db,
            "seconds": plan["seconds"],
        }
    rows = figures.values()
    require(all(row["fresh_build_sqnr_db"] >= row["least_db"] and row["builds"] <= 10 for row in rows), figures)
    return figures


def eight_bits(step: Step) -> Figures:
    """INT8 by Q/DQ pairs: the nodes to leave in float32, confirmed by builds, and once more by a fresh one."""
    examples = Path(__file__).resolve().parents[2] / "examples"
    net = (str(examples / "digits_cnn.onnx"), "--inputs", str(examples / "digits_samples.npz"))
    engine = target(precision="int8")
    _, plan = step.triage("debug", "precision", *net, "--target", engine, "--sqnr", "35", "-o", "mixed.onnx",
                          "--timeout", TIMEOUT, codes=(0, 4))  # fmt: skip
    _, after = step.triage("run", *net, "--target", engine, "--target-model", "mixed.onnx", "--timeout", TIMEOUT,
                           codes=(0, 1))  # fmt: skip
    keys = ("kept", "candidates", "builds", "minimality", "error", "low_share", "honoured")
    figures = {**{key: plan[key] for key in keys}, "fresh_build_sqnr_db": least_sqnr_db(after)}
    require(figures["fresh_build_sqnr_db"] >= 33.0, figures)
    return figures


def resnet50(step: Step) -> Figures:
    """The light_resnet50 of onnx on FP16: NaN, and where it is born."""
    import onnx

    source = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
    step.triage("surgeon", "sanitize", str(source), "-o", "resnet50.onnx", "--fold-constants")
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    np.savez(step.folder / "x.npz", **{first_input(step.folder / "resnet50.onnx"): image})
    engine = target(precision="fp16", timing_cache=str(step.folder / "timing.cache"))
    words = (
        "resnet50.onnx",
        "--inputs",
        "x.npz",
        "--target",
        engine,
        "--timeout",
        "560",
        "--builds",
        "0",
        "--budget",
        "480",
    )
    _, report = step.triage("diagnose", *words, codes=(0, 1, 4))
    figures = verdict_figures(report)
    require(figures["verdict"] in ("range-overflow", "non-finite"), figures)
    return figures


def crash(step: Step) -> Figures:
    """A worker killed in mid-build is an answer, and the next build works."""
    import psutil

    from tensortriage.engines.registry import create
    from tensortriage.engines.spec import EngineSpec
    from tensortriage.errors import EngineCrashed

    spec = EngineSpec.parse(target(precision="fp16"))
    engine = create(spec)
    model = step.nets / "transformer4.onnx"

    def kill() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for process in psutil.Process().children(recursive=True):
                if "tensortriage_worker.serve" in " ".join(process.cmdline()) and process.cpu_times().user > 2.0:
                    process.kill()
                    return
            time.sleep(0.1)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        engine.compile(model, spec.options).close()
    except EngineCrashed as error:
        message = error.message
    else:
        raise AssertionError("the build was not killed")
    finally:
        killer.join()
    started = time.perf_counter()
    session = engine.compile(step.nets / "cnn.onnx", spec.options)
    outputs = session.run(dict(np.load(step.nets / "cnn.npz")))
    session.close()
    return {"outcome": message, "next_build_seconds": round(time.perf_counter() - started, 1),
            "finite": all(bool(np.isfinite(array).all()) for array in outputs.values())}  # fmt: skip


STEPS: Mapping[str, Callable[[Step], Figures]] = {
    "conformance": conformance, "small": small, "plan": plan, "transformer": transformer, "builds": builds,
    "pinned": pinned, "guilty": guilty, "overflow": overflow, "kept": kept, "reduce": reduce,
    "precision": precision, "eight_bits": eight_bits, "resnet50": resnet50, "crash": crash,
}  # fmt: skip


def run(out: Path, name: str) -> bool:
    """Run a step and write what came of it."""
    step = Step(out, name)
    started, load = time.perf_counter(), os.getloadavg()[0]
    record: dict[str, Any] = {"step": name, "what": STEPS[name].__doc__, "ok": False, "figures": {}, "notes": ""}
    try:
        record |= {"figures": STEPS[name](step), "ok": True}
    except Exception as error:  # a step that fails is a result
        record["notes"] = f"{type(error).__name__}: {error}"[:3000]
        record["trace"] = traceback.format_exc()[-2000:]
    record |= {"seconds": round(time.perf_counter() - started, 1), "commands": step.commands, "load": round(load, 1)}
    (out / f"{name}.json").write_text(json.dumps(record, indent=1))
    print(f"{name}: {'ok' if record['ok'] else 'FAILED'} {record['seconds']} s {record['notes'][:600]}", flush=True)
    print("   ", json.dumps(record["figures"])[:1500], flush=True)
    return bool(record["ok"])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    failures = [name for name in sys.argv[2:] if not run(folder, name)]
    sys.exit(1 if failures else 0)
