"""What does editing a model cost, next to Polygraphy?

    python bench/surgeon.py --polygraphy-python PYTHON [MODEL ...]

`triage` against `polygraphy`, in turns, each in a process of its own, on `inspect model`, `surgeon sanitize` and
`surgeon extract` (the third quarter of the graph), as a user types them: what triage does by default, it does here, the
proof that the edit is right included. PYTHON belongs to an environment with polygraphy, onnx, onnx_graphsurgeon,
onnxruntime and sympy, without which Polygraphy leaves its shape inference out. The best of several rounds counts, since
other work on the machine only ever adds. Peak memory is the largest resident set that the kernel saw (ru_maxrss of the
child), pages of mapped files included.

Without MODEL: DenseNet-121 as it comes with the onnx package (1,746 nodes). The 500 MB transformer of RESULTS.md is
GPT-2 as torch 2.13 exports it (452 nodes, 498 MB); any ONNX file will do. Exit code 1 when triage takes more CPU time
or more memory anywhere.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from compiled import compile_packages
from inspect_model import DENSENET, TRIAGE, Cost, best, measure

Ends = tuple[str, str]


def quarter(path: Path) -> Ends:
    """Return two values between which the third quarter of a graph lies: nothing else crosses it there."""
    import onnx  # in a process of its own: what this one holds in memory counts as that of its children

    graph = onnx.load(path, load_external_data=False).graph
    alive = {value.name for value in graph.input} - {weight.name for weight in graph.initializer}
    nodes = []
    for node in graph.node:  # constants cross everywhere
        if alive & set(node.input):
            nodes.append(node)
            alive |= set(node.output)
    last = {name: at for at, node in enumerate(nodes) for name in node.input if name in alive}
    narrow: list[tuple[int, str]] = []
    live: set[str] = set()
    for at, node in enumerate(nodes):
        live = {name for name in live | set(node.output) if last.get(name, -1) > at}
        if len(live) == 1 and live <= set(node.output):
            narrow.append((at, *live))
    at_half, at_end = (min(narrow, key=lambda found: abs(found[0] - share * len(nodes)))[1] for share in (0.5, 0.75))
    return at_half, at_end


def commands(model: Path, out: Path) -> Iterator[list[str]]:
    """Yield the command lines, the same for both programs."""
    found = subprocess.run(
        [sys.executable, __file__, "--quarter", str(model)], check=True, capture_output=True, text=True
    )
    start, end = found.stdout.split()
    yield ["inspect", "model", str(model)]
    yield ["surgeon", "sanitize", str(model), "--fold-constants", "-o", str(out)]
    yield ["surgeon", "sanitize", str(model), "--fold-constants", "--cleanup", "-o", str(out)]
    yield [
        "surgeon",
        "extract",
        str(model),
        "--inputs",
        f"{start}:auto:auto",
        "--outputs",
        f"{end}:auto",
        "-o",
        str(out),
    ]


def compare(words: list[str], polygraphy: list[str], rounds: int) -> tuple[Cost, Cost]:
    """Return the best of both programs."""
    found: dict[str, list[Cost]] = {"theirs": [], "ours": []}
    for _ in range(rounds):
        for name, program in (("theirs", polygraphy), ("ours", TRIAGE)):
            found[name].append(measure([*program, *words]))
    return best(found["theirs"]), best(found["ours"])


def main() -> int:
    if sys.argv[1:2] == ["--quarter"]:
        print(*quarter(Path(sys.argv[2])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polygraphy-python", required=True, help="Python of an environment that has Polygraphy")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("models", nargs="*", type=Path, default=[DENSENET])
    given = parser.parse_args()
    compile_packages()
    polygraphy = [given.polygraphy_python, "-c", "from polygraphy.tools import main; main()"]
    worse = 0
    print(
        "| model | command | s | Polygraphy's | ratio | CPU s | Polygraphy's | ratio | peak MB | Polygraphy's | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models:
            for words in commands(model, Path(folder) / "out.onnx"):
                theirs, ours = compare(words, polygraphy, given.rounds)
                cells = [model.name, " ".join(word for word in words[:2] + words[3:] if not word.startswith("/"))]
                for mine, other, form in (
                    (ours.wall_seconds, theirs.wall_seconds, ".2f"),
                    (ours.cpu_seconds, theirs.cpu_seconds, ".2f"),
                    (ours.peak_bytes / 1e6, theirs.peak_bytes / 1e6, ".0f"),
                ):
                    cells += [format(mine, form), format(other, form), f"**{mine / other:.2f}**"]
                print("| " + " | ".join(cells) + " |", flush=True)
                worse += ours.cpu_seconds > theirs.cpu_seconds or ours.peak_bytes > theirs.peak_bytes
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
