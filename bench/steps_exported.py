"""Are decoders as PyTorch and Optimum export them walked step by step: healthy ones in peace, faults with step and op?

    python bench/steps_exported.py FOLDER
    python bench/steps_exported.py FOLDER --only mamba --steps 24

Forty-eight decoders of seven families (`networks.decoders`) are exported into a folder, or read from it: by both
exporters, with their caches open; T5, BART and Whisper as Optimum writes them, merged and with caches given; the others
merged as well. Each is run in fp32, fp16
and bf16 (every result rounded once): none may be accused, or stop. Then faults are planted, some from the first step
on, some at one step only: an old row in a cache that grows, 10 % in the op that makes a state that is rewritten, a mask
or window one position short, a wrong head, wrong angles (RoPE), a position one off, an encoder's mask that leaks;
step and op must be named, and of merged decoders, in both branches of the If, the branch. Needs
`torch`, `onnxscript` and `transformers` to export.
"""

import argparse
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from tensortriage_steps.request import StepsRequest
from tensortriage_steps.steps_report import StepsReport
from tensortriage_steps.walk import walk

TARGETS = ("onnxruntime", "emulate:precision=fp16", "emulate:precision=bf16")
PLAIN, READING = ("llama", "gpt2", "mistral", "mamba"), ("t5", "bart", "whisper")
FAULT_AT = 3
FIRST_POSITION = {"bart": 2}
"""The row of the first position in a table of positions, where it is not 0."""


def corpus(folder: Path, only: str) -> Iterator[Path]:
    """Yield the decoders; those that are not in the folder are exported."""
    plain = itertools.product((0, 1, 2), PLAIN, ("",), ("legacy", "dynamo"))
    reading = itertools.product((0, 1), READING, ("merged", "with-past"), ("legacy",))
    newer = itertools.product((0,), ("bart", "whisper"), ("merged", "with-past"), ("dynamo",))
    joined = itertools.product((0,), PLAIN, ("merged",), ("legacy", "dynamo"))
    for seed, family, kind, exporter in (*plain, *reading, *newer, *joined):
        path = folder / f"{family}{kind}-{exporter}-{seed}.onnx"
        if only not in path.name:
            continue
        if not path.exists():
            from networks.decoders import export

            export(family, exporter, path, kind=kind, gain=1.6 if family == "mamba" else 2.5, seed=seed)
        yield path


@dataclasses.dataclass(frozen=True)
class Planted:
    """A fault in one node.

    Attributes:
        word: What it stands for.
        kind: Kind and amount, as `FaultyEngine` takes them.
        node: Name of the node.
        behind: Nodes that compute with it, and may be named in its place: one reads it and nothing else does.
        short: By how much the number that the fault waits for is below the length of the step; None for a fault that
            shows in every step.
        body: Branch that the node is in, as ``optimum::if/then_branch``; empty in the main graph.
        step: The first step that it shows in.
    """

    word: str
    kind: str
    node: str
    behind: tuple[str, ...] = ()
    short: int | None = None
    body: str = ""
    step: int = 0


def planted(path: Path) -> Iterator[Planted]:
    """Yield faults for what a decoder has; of a merged one in both branches: the one of step 0, and the other."""
    graph = onnx.load(path).graph
    weights = {tensor.name: tensor.dims for tensor in graph.initializer}
    if graph.node[-1].op_type != "If":
        for fault in planted_in(graph, weights, path):
            yield dataclasses.replace(fault, step=0 if fault.short is None else FAULT_AT)
        return
    for branch in graph.node[-1].attribute:
        body, first = f"{graph.node[-1].name}/{branch.name}", branch.name == "else_branch"
        for fault in planted_in(branch.g, weights, path):
            short, later = (None, 0) if first else (fault.short, 1 if fault.short is None else FAULT_AT)
            yield dataclasses.replace(fault, body=body, short=short, step=later)


def planted_in(graph: onnx.GraphProto, weights: Mapping[str, Sequence[int]], path: Path) -> Iterator[Planted]:
    """Yield faults for what a graph has: of its cache, mask, heads, positions, scores and what it reads."""
    makers = {name: node for node in graph.node for name in node.output}
    last = [each for value in graph.output if (each := makers[value.name]).op_type != "Constant"][-1]
    if last.op_type == "Concat":
        yield Planted("cache", "stale-row", last.name, short=0)
    else:
        yield Planted("state", "scale,amount=1.1", last.name)
    softmaxes = [node for node in graph.node if node.op_type == "Softmax"]
    reading = [node for node in softmaxes if "enc" in node.name.lower().rsplit("/", 2)[-2:][0]]
    own = [node for node in softmaxes if node not in reading and makers[node.input[0]].op_type == "Add"]
    if own:
        scores = makers[own[0].input[0]]
        yield Planted("window" if "mistral" in path.name else "mask", "mask-short", scores.name, (own[0].name,), 0)
        heads = makers[scores.input[0]]
        yield Planted("head", "tile,amount=2", heads.name, (scores.name,))
    if reading:
        yield Planted("encoder mask", "padding-leak,amount=0.2", reading[0].name)
    for node in graph.node:
        if node.op_type == "Cos":
            yield Planted("RoPE", "offset,amount=0.2", node.name, users_of(graph, node))
        if node.op_type == "Gather" and "position" in " ".join([*node.input, node.name]).lower() and weights.get(
            node.input[0], [0])[0] > 1:  # fmt: skip
            short = 1 - FIRST_POSITION.get(path.name.partition("-")[0].removesuffix("merged").removesuffix("with"), 0)
            yield Planted("position", "row-before", node.name, users_of(graph, node), short)
            break


def users_of(graph: onnx.GraphProto, node: onnx.NodeProto) -> tuple[str, ...]:
    """Return the name of the node that alone reads a node's result."""
    users = [user.name for user in graph.node if set(user.input) & set(node.output)]
    return tuple(users) if len(users) == 1 else ()


def ask(path: Path, target: str, steps: int, case: Path, *, drift: bool) -> StepsReport:
    return walk(StepsRequest(model=path, target=target, steps=steps, case=case, drift=drift))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--faults", action="store_true", help="leave out narrow formats, and ask about faults only")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "faulty.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    runs = alarms = faults = named = 0
    for path in corpus(given.folder, given.only):
        for number, target in enumerate(TARGETS[:1] if given.faults else TARGETS):
            report = ask(path, target, given.steps, given.folder / f"case-{path.stem}-{number}", drift=True)
            runs, alarms = runs + 1, alarms + (report.exit_code != 0)
            nearest = max(value.ratio for row in report.rows for value in (*row.values, *row.drifted))
            print(f"{path.stem} {target}: {report.verdict}, nearest to a limit {nearest:.2f}", flush=True)
        for fault in planted(path):
            length = report.rows[0].length + FAULT_AT
            where = "" if fault.short is None else f",length={length - fault.short}"
            target = f"script:{given.folder}/faulty.py:Engine,kind={fault.kind},node={fault.node}{where}"
            case = f"case-{path.stem}-{fault.word}{fault.body[-11:-7]}".replace(" ", "-")
            found = ask(path, target, 6, given.folder / case, drift=False)
            named_op = found.diagnosis and (found.diagnosis.node, found.diagnosis.body)
            right = found.first == fault.step and named_op in [(n, fault.body) for n in (fault.node, *fault.behind)]
            faults, named = faults + 1, named + right
            print(f"{'ok' if right else 'NO'} {path.stem} {fault.word} {fault.node}: {found.summary}", flush=True)
    print(f"healthy: {alarms} alarms of {runs}; faults: step and op of {named} of {faults}")


if __name__ == "__main__":
    main()
