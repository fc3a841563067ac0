"""How long does it take to reduce a failing model, next to Polygraphy on the same model and check command?

    python bench/reduce.py --model minilm.onnx --inputs minilm.npz --polygraphy-python /path/to/venv/bin/python

The check looks for nodes that are needed: it fails when a piece holds all of them, so the smallest result is known.
Every contestant gets the same check command, which writes down how often it was run (triage: once more than its search
needs, since the written result is asked about again). The last contestant asks an engine with a planted fault instead
of a command. Everything is written to a temporary folder.
"""

import argparse
import dataclasses
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
from compiled import compile_packages

CHECK = """
import sys

data = open("polygraphy_debug.onnx", "rb").read()
open("checks.log", "a").write("x")
sys.exit(all(b"\\x1a" + bytes([len(name)]) + name.encode() in data for name in sys.argv[1:]))
"""
"""NodeProto.name is field 3, a string; a check that imports onnx would measure that."""

FAULTY = """
from tensortriage_testing import FaultyEngine
class Engine(FaultyEngine): pass
"""


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A command to measure."""

    name: str
    command: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one reduction took and left, CPU seconds with all its processes; 0 ``checks`` where no command was asked."""

    seconds: float
    cpu_seconds: float
    checks: int
    nodes: int
    exit_code: int
    output: str


def compete(contestant: Contestant) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "check.py").write_text(CHECK)
        (folder / "faulty.py").write_text(FAULTY)
        started, used = time.perf_counter(), cpu_of_children()
        done = subprocess.run(contestant.command, cwd=folder, capture_output=True, text=True, check=False)
        seconds, used = time.perf_counter() - started, cpu_of_children() - used
        log, result = folder / "checks.log", folder / "reduced.onnx"
        checks = len(log.read_text()) if log.exists() else 0
        nodes = len(onnx.load(result, load_external_data=False).graph.node) if result.exists() else 0
        return Outcome(seconds, used, checks, nodes, done.returncode, done.stdout + done.stderr)


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def contestants(
    model: Path, needed: Sequence[str], *, triage: str, polygraphy_python: str, modes: Sequence[str]
) -> Iterator[Contestant]:
    check = ["--check", sys.executable, "-S", "-E", "check.py", *needed]
    words = [str(model), "-o", "reduced.onnx"]
    yield Contestant("triage", [triage, "debug", "reduce", *words, *check])
    if polygraphy_python:
        tool = [polygraphy_python, str(Path(polygraphy_python).with_name("polygraphy")), "debug", "reduce", *words]
        for mode in modes:
            yield Contestant(f"polygraphy {mode}", [*tool, "--mode", mode, *check])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--inputs", type=Path, required=True, help="one feed, for the planted fault")
    parser.add_argument("--polygraphy-python", default="", help="interpreter of the environment that has polygraphy")
    parser.add_argument("--modes", nargs="+", default=["bisect"], help="of Polygraphy; linear takes minutes")
    parser.add_argument("--triage", default=str(Path(sys.executable).with_name("triage")), help="the triage command")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    compile_packages()
    model = given.model.resolve()
    names = [node.name for node in onnx.load(model, load_external_data=False).graph.node if node.op_type != "Constant"]
    one, other = names[len(names) * 2 // 5], names[len(names) * 4 // 5]
    print(f"{'':34}{'seconds':>9}{'CPU':>8}{'checks':>8}{'nodes':>7}")
    for needed in ([one], [one, other]):
        python = given.polygraphy_python
        for entry in contestants(model, needed, triage=given.triage, polygraphy_python=python, modes=given.modes):
            show(f"{len(needed)} needed, {entry.name}", compete(entry))
    target = f"script:faulty.py,kind=scale,node={one}"
    words = [str(model), "-o", "reduced.onnx", "--inputs", str(given.inputs.resolve()), "--target", target]
    engines = [given.triage, "debug", "reduce", *words]
    show("planted fault, triage", compete(Contestant("engines", engines)))
    show("the same, nodes only", compete(Contestant("engines", [*engines, "--shrink-budget", "0"])))


def show(title: str, outcome: Outcome) -> None:
    print(f"{title:34}{outcome.seconds:9.1f}{outcome.cpu_seconds:8.1f}{outcome.checks:8}{outcome.nodes:7}", flush=True)
    if outcome.exit_code:
        print(f"  exit code {outcome.exit_code}: {outcome.output.strip()[-400:]}")


if __name__ == "__main__":
    main()
