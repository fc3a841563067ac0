"""Are decoders as PyTorch and Optimum export them walked step by step: healthy ones in peace, faults with step and op?

    python bench/steps_exported.py FOLDER
    python bench/steps_exported.py FOLDER --only mamba --steps 24

Forty decoders of seven families (`step_decoders`) are exported into a folder, or read from it: by both exporters, with
their caches open; T5, BART and Whisper as Optimum writes them, merged and with caches given. Each is run in fp32, fp16
and bf16 (every result rounded once): none may be accused, or stop. Then a fault is planted in each at one step: an old
row in a cache that grows, or 10 % in the op that makes a state that is rewritten; step and op must be named. Needs
`torch`, `onnxscript` and `transformers` to export.
"""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import onnx

from tensortriage.workflows.requests import StepsRequest
from tensortriage.workflows.steps.steps_request import StepsReport
from tensortriage.workflows.steps.walk import walk

TARGETS = ("onnxruntime", "emulate:precision=fp16", "emulate:precision=bf16")
PLAIN, READING = ("llama", "gpt2", "mistral", "mamba"), ("t5", "bart", "whisper")
FAULT_AT = 3


def corpus(folder: Path, only: str) -> Iterator[Path]:
    """Yield forty decoders; those that are not in the folder are exported."""
    plain = itertools.product((0, 1, 2), PLAIN, ("",), ("legacy", "dynamo"))
    reading = itertools.product((0, 1), READING, ("merged", "with-past"), ("legacy",))
    newer = itertools.product((0,), ("bart", "whisper"), ("merged", "with-past"), ("dynamo",))
    for seed, family, kind, exporter in (*plain, *reading, *newer):
        path = folder / f"{family}{kind}-{exporter}-{seed}.onnx"
        if only not in path.name:
            continue
        if not path.exists():
            from step_decoders import export

            export(family, exporter, path, kind=kind, gain=1.6 if family == "mamba" else 2.5, seed=seed)
        yield path


def planted(path: Path) -> tuple[str, str] | None:
    """Return kind and node of a fault in what makes the last state; None where that is in a body."""
    graph = onnx.load(path).graph
    makers = {name: node for node in graph.node for name in node.output}
    node = makers[graph.output[-1].name]
    if node.op_type == "If":
        return None
    return ("stale-row" if node.op_type == "Concat" else "scale,amount=1.1", node.name)


def ask(path: Path, target: str, steps: int, case: Path, *, drift: bool) -> StepsReport:
    return walk(StepsRequest(model=path, target=target, steps=steps, case=case, drift=drift))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--steps", type=int, default=12)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "faulty.py").write_text("from tensortriage.testing import FaultyEngine as Engine\n")
    runs = alarms = faults = named = 0
    for path in corpus(given.folder, given.only):
        for number, target in enumerate(TARGETS):
            report = ask(path, target, given.steps, given.folder / f"case-{path.stem}-{number}", drift=True)
            runs, alarms = runs + 1, alarms + (report.exit_code != 0)
            nearest = max(value.ratio for row in report.rows for value in (*row.values, *row.drifted))
            print(f"{path.stem} {target}: {report.verdict}, nearest to a limit {nearest:.2f}", flush=True)
        if (fault := planted(path)) is None:
            continue
        length = report.rows[0].length + FAULT_AT
        where = f",length={length}" if fault[0] == "stale-row" else ""
        target = f"script:{given.folder}/faulty.py:Engine,kind={fault[0]},node={fault[1]}{where}"
        report = ask(path, target, 6, given.folder / f"case-{path.stem}-fault", drift=False)
        step = FAULT_AT if where else 0
        right = report.first == step and report.diagnosis is not None and report.diagnosis.node == fault[1]
        faults, named = faults + 1, named + right
        print(f"{'ok' if right else 'NO'} {path.stem} {fault[0]} {fault[1]}: {report.summary}", flush=True)
    print(f"healthy: {alarms} alarms of {runs}; faults: step and op of {named} of {faults}")


if __name__ == "__main__":
    main()
