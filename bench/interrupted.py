"""What does `triage debug precision` leave behind when it is interrupted at random moments, and what does it repeat?

    python bench/interrupted.py [--times 6] [--only WORD]

Each kind of search runs once to the end, for its time; then in new cases, as a process of its own, to which SIGINT or
SIGTERM is sent at moments spread at random over that time (and beyond the start-up of Python, which has nothing to
leave). After each: the mixed model must exist, load, and on ONNX Runtime be at most as far from the float model as its
record says; the same command given again in the case must come to what the whole search came to, and build and check
nothing that the case remembers: what both report, added up, is what the whole search reports.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CHECK = """
import sys
import numpy as np, onnxruntime as ort
sessions = [ort.InferenceSession(path) for path in ({model!r}, "polygraphy_debug.onnx")]
samples = np.load({samples!r})
feed = {{value.name: samples[value.name] for value in sessions[0].get_inputs()}}
answers = [session.run(None, feed)[0] for session in sessions]
error = np.sqrt(np.mean((answers[0] - answers[1]) ** 2) / np.mean(answers[0] ** 2))
sys.exit(not error < {limit})
"""
VIT = ("digits_vit_overflow.onnx", "digits_vit_overflow.npz")
CNN = ("digits_cnn.onnx", "digits.npz")
KINDS = {
    "emulation": (VIT, ["--target", "emulate:precision=fp16", "--sqnr", "40"]),
    "engine": (VIT, ["--target", "onnxruntime:precision=fp16", "--sqnr", "76"]),
    "engine, bisect": (VIT, ["--target", "onnxruntime:precision=fp16", "--sqnr", "76", "--mode", "bisect"]),
    "int8": (CNN, ["--target", "onnxruntime", "--int8", "--sqnr", "42"]),
    "command": (VIT, ["--fp16", "--check", sys.executable, "check.py"]),
    "command, int8": (CNN, ["--int8", "--check", sys.executable, "check.py"]),
    "budget": (VIT, ["--target", "onnxruntime:precision=fp16", "--sqnr", "76", "--budget", "0", "--max-builds", "1"]),
}
LIMITS = {"command": 0.0003, "command, int8": 0.008}
STARTED = 1.0
"""Seconds of start-up that are left out: before them there is no search."""

JUDGES_DIFFER = 1.5
"""In 8 bits a quarter of the samples judges, and all are looked at here."""


def start(kind: str, folder: Path) -> "subprocess.Popen[str]":
    """Start a search in a folder, in a group of processes of its own."""
    (model, samples), words = KINDS[kind]
    if kind in LIMITS:
        given = {"model": str(EXAMPLES / model), "samples": str(EXAMPLES / samples), "limit": LIMITS[kind]}
        (folder / "check.py").write_text(CHECK.format(**given))
    at = words.index("--check") if "--check" in words else len(words)
    command = [
        *(sys.executable, "-m", "tensortriage", "debug", "precision", str(EXAMPLES / model)),
        *("--inputs", str(EXAMPLES / samples), "-o", "mixed.onnx", "--case", "case", "--json"),
        *words[:at], *words[at:],
    ]  # fmt: skip
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def record(process: "subprocess.Popen[str]") -> tuple[int, dict]:
    """Wait for a search; return its exit code and its document."""
    out, err = process.communicate()
    try:
        return process.returncode, json.loads(out)
    except ValueError:
        return process.returncode, {"error": err[-300:]}


def error_in(kind: str, folder: Path) -> float:
    """Return how far the mixed model is from the float one on the samples, as ONNX Runtime runs it unoptimized."""
    (model, samples), _ = KINDS[kind]
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    sessions = [
        ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for path in (EXAMPLES / model, folder / "mixed.onnx")
    ]
    names = [value.name for value in sessions[0].get_inputs()]
    with np.load(EXAMPLES / samples) as file:
        feed = {name: file[name] for name in names}
    return error_of(measure(*(session.run(None, feed)[0] for session in sessions)))


def interrupted(kind: str, at: float, number: int, whole: dict) -> tuple[str, bool]:
    """Interrupt a search after some seconds and resume it; return what came of it in words, and whether all is well."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = start(kind, folder)
        time.sleep(at)
        ended = process.poll() is not None
        process.send_signal(number)
        code, plan = record(process)
        if "kept" not in plan:
            return f"exit {code}, nothing written: {plan.get('slug', plan.get('error'))}", False
        error = error_in(kind, folder) if (folder / "mixed.onnx").exists() else float("nan")
        said = plan["error"]["measured"] if plan["error"]["measured"] is not None else plan["error"]["predicted"]
        room = JUDGES_DIFFER if "int8" in kind else 1.05
        good = error <= (room * said + 1e-6 if said is not None else 1.0)
        last, resumed = record(start(kind, folder))
        repeated = plan["checks"] + resumed.get("checks", 0) - whole["checks"] if code == 130 else resumed["checks"]
        late = ", after its end" if ended else ""
        same = resumed.get("kept") == whole["kept"]
    seen = "" if plan["confirmed"] else ", unconfirmed"
    words = (
        f"exit {code}{late}, {len(plan['nodes'])} of {plan['candidates']} kept{seen}, "
        f"error {error:.2g} ({'no claim' if said is None else f'claim {said:.2g}'}), resumed: exit {last}, "
        f"{'same' if same else 'another'} choice, {repeated} checks repeated"
    )
    return words, good and same and repeated <= 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    rng, bad = random.Random(7), 0
    for kind in KINDS:
        if given.only not in kind:
            continue
        with tempfile.TemporaryDirectory() as name:
            begun = time.perf_counter()
            code, whole = record(start(kind, Path(name)))
            seconds = time.perf_counter() - begun
            if code:
                sys.exit(f"{kind}: {whole}")
        print(f"{kind}: {len(whole['kept'])} kept, {whole['checks']} checks, {whole['emulated']} emulated", flush=True)
        for count in range(given.times):
            number = (signal.SIGINT, signal.SIGTERM)[count % 2]
            at = rng.uniform(STARTED, seconds)
            words, good = interrupted(kind, at, number, whole)
            bad += not good
            print(f"  {'  ' if good else '! '}{number.name} at {at / seconds:.0%}: {words}", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
