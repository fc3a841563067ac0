"""Is the first wrong step of a decoder named, with layer and op, and are healthy engines left in peace?

    python bench/steps.py
    python bench/steps.py --only healthy

Thirty faults at one step each (an old row left in a cache, a rotary position one off, a mask one short, at lengths of
seven and other steps, in every layer), planted in two decoders with caches, 32 steps each: step and op must be named.
Then healthy engines on both: every step must be right, and drift within its prediction. Needs `openvino`.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tensortriage.errors import EngineMissing
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.steps_report import StepsReport
from tensortriage_steps.walk import walk
from tensortriage_testing import gpt2_decoder, llama_decoder, save_model

STEPS, PROMPT = 32, 6
HEALTHY = (
    "onnxruntime",
    "openvino:precision=fp32",
    "openvino:precision=bf16",
    "emulate:precision=bf16",
    "emulate:precision=fp16",
)
"""Ten diagnoses over two models."""
ATTENTION = "/model/layers.{}/self_attn/"
PLANTED = {
    "gpt2": (("stale-row", "Concat_key"), ("stale-row", "Concat_value"), ("mask-short", "Where")),
    "llama": (
        ("stale-row", "Concat_key"),
        ("row-before", "rotary/Gather_cos"),
        ("row-before", "rotary/Gather_sin"),
        ("mask-short", "Where"),
    ),
}
FORMATS = ("fp32", "bf16")


def planted() -> Iterator[tuple[str, str, str, int, str]]:
    """Yield model, kind, node, step and format of thirty faults: layer 3 at step 7 first, then other places."""
    places = [(3, 7), (0, 13), (2, 25), (1, 2)]  # at step 1 the position is the length of the prompt, which step 0 has
    cases = [
        (model, kind, ATTENTION.format(layer) + node, step, FORMATS[0])
        for layer, step in places
        for model, kinds in PLANTED.items()
        for kind, node in kinds
    ]
    again = [(model, kind, node, step, FORMATS[1]) for model, kind, node, step, _ in cases[:2]]
    yield from (cases + again)[:30]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["faults", "healthy"], default="")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory(prefix="bench-steps-") as name:
        folder = Path(name)
        (folder / "faulty.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
        save_model(gpt2_decoder(), folder / "gpt2.onnx")
        save_model(llama_decoder(), folder / "llama.onnx")
        prompt = np.random.default_rng(0).integers(0, 101, (1, PROMPT))
        np.savez(folder / "prompt.npz", input_ids=prompt)
        if only != "healthy":
            faults(folder)
        if only != "faults":
            healthy(folder)


def faults(folder: Path) -> None:
    steps = named = 0
    cases = list(planted())
    for number, (model, kind, node, step, precision) in enumerate(cases):
        length = PROMPT + step - (kind == "row-before")  # positions count from 0
        target = f"script:{folder}/faulty.py:Engine,kind={kind},node={node},length={length},precision={precision}"
        started = time.perf_counter()
        report = ask(folder, model, target, folder / f"fault-{number}", drift=False)
        right = report.verdict == "fault" and report.first == step
        op = right and report.diagnosis is not None and report.diagnosis.node == node
        steps, named = steps + right, named + op
        found = f"{report.verdict} at {report.first}, {report.diagnosis.node if report.diagnosis else '-'}"
        mark = "ok" if op else "NO"
        print(
            f"{mark} {model} {kind} {node} step {step} {precision}: {found} ({time.perf_counter() - started:.0f} s)",
            flush=True,
        )
    print(f"faults: step {steps} of {len(cases)}, step and op {named} of {len(cases)}", flush=True)


def healthy(folder: Path) -> None:
    runs, alarms, worst = 0, 0, 0.0
    for model in PLANTED:
        for target in HEALTHY:
            try:
                report = ask(folder, model, target, folder / f"{model}-{target.replace(':', '-')}")
            except EngineMissing as error:
                print(f"left out {model} {target}: {error}", flush=True)
                continue
            runs, alarms = runs + 1, alarms + (report.exit_code != 0)
            ratio = max(value.ratio for row in report.rows for value in (*row.values, *row.drifted))
            worst = max(worst, ratio)
            print(f"{report.verdict} {model} {target}: nearest to a limit {ratio:.2f}", flush=True)
    print(f"healthy: {alarms} alarms of {runs}, nearest to a limit {worst:.2f}")


def ask(folder: Path, model: str, target: str, case: Path, *, drift: bool = True) -> StepsReport:
    return walk(
        StepsRequest(
            model=folder / f"{model}.onnx",
            target=target,
            steps=STEPS,
            feeding=FeedRequest(paths=[str(folder / "prompt.npz")]),
            case=case,
            drift=drift,
        )
    )


if __name__ == "__main__":
    main()
