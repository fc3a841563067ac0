"""Which share of small mistakes in the code that judges do the tests find?

    python bench/mutation.py [--count 200] [--seed 1] [--tests test|lengthy|both] [--jobs 2]

Draws lines of `compare`, `envelope`, `diagnose`, `search` and `model`, and makes a mistake in each, one at a time, in
copies of the tree: another comparison, operator or constant, a condition turned round, a result left out. Then the
tests run that belong to the file, in the place that mirrors it or importing it: those of `make test`, of `make
lengthy`, or both. A test that fails without the mistake as well is left out from there on. A seed draws the same
mistakes of the same code.
"""

import argparse
import ast
import itertools
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import affected  # noqa: E402

PACKAGES = ("compare", "envelope", "diagnose", "search", "model")
MARKERS = {"test": ["-m", "not lengthy"], "lengthy": ["-m", "lengthy"], "both": []}
SECONDS = 900.0
"""Longest run of the tests of one file; what takes longer hangs, which is a find."""
NO_TESTS, NEIGHBOURS, ATTEMPTS = 5, 8, 8
"""Exit code of pytest; how many test files of the package and its users are asked where none is the file's own; how
often tests that fail anyway are left out before the mistake counts as ``unsound``."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
COMPARISONS = {"Lt": "<=", "LtE": "<", "Gt": ">=", "GtE": ">", "Eq": "!=", "NotEq": "==", "Is": "is not", "IsNot": "is"}
COMPARISONS |= {"In": "not in", "NotIn": "in"}
OPERATORS = {"Add": "-", "Sub": "+", "Mult": "/", "Div": "*", "FloorDiv": "*", "Mod": "*", "Pow": "*", "BitOr": "&"}


Mistake = tuple[Path, int, str, str, str]
"""File, line, what is replaced by what, and the text of the file with it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", choices=MARKERS, default="test")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    drawn = mistakes(random.Random(arguments.seed))[: arguments.count]
    broken: set[str] = set()
    trees: queue.SimpleQueue[Path] = queue.SimpleQueue()

    def asked(mistake: Mistake, files: list[str]) -> str:
        tree = trees.get()
        try:
            found = outcome(tree, mistake, [*MARKERS[arguments.tests], *files], broken) if files else "no tests"
        finally:
            trees.put(tree)
        place, line, before, after, _ = mistake
        print(f"{found:9s} {place}:{line}  {before} -> {after}", flush=True)
        return found

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        for number in range(arguments.jobs):
            trees.put(copy_of_tree(Path(folder) / str(number)))
        outcomes = list(pool.map(asked, drawn, [tests_near(place) for place, *_ in drawn]))
    killed = outcomes.count("killed") + outcomes.count("hangs")
    print(f"{killed} of {len(outcomes)} killed ({killed / max(len(outcomes), 1):.0%}) by {arguments.tests}")
    if broken:
        print("left out, since they fail without a mistake:", *sorted(broken), sep="\n  ")


def mistakes(draw: random.Random) -> list[Mistake]:
    """Return one mistake a line, in drawn order."""
    files = [file for name in PACKAGES for file in sorted((ROOT / "src/tensortriage" / name).rglob("*.py"))]
    lines, drawn = [], []
    for file in files:
        source, starts = file.read_bytes(), [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        by_line: dict[int, list[tuple[int, int, str]]] = {}
        for node in ast.walk(without_declarations(ast.parse(source))):
            for inner, after in changes(node, source.decode()):
                if inner.lineno == inner.end_lineno:
                    at = starts[inner.lineno - 1]
                    by_line.setdefault(inner.lineno, []).append(
                        (at + inner.col_offset, at + inner.end_col_offset, after)
                    )
        lines += [(file, number, source, found) for number, found in sorted(by_line.items())]
    draw.shuffle(lines)
    for file, number, source, found in lines:
        begin, end, after = draw.choice(found)
        text = (source[:begin] + after.encode() + source[end:]).decode()
        drawn.append((file.relative_to(ROOT), number, source[begin:end].decode(), after, text))
    return drawn


def without_declarations(tree: ast.Module) -> ast.Module:
    """Return a module without annotations and decorators, which compute nothing."""
    for node in ast.walk(tree):
        for field in ("annotation", "returns", "decorator_list"):
            if getattr(node, field, None):
                setattr(node, field, [] if field == "decorator_list" else None)
    return tree


def changes(node: ast.AST, source: str) -> list[tuple[ast.expr, str]]:
    """Return expressions, and the code that takes the place of each: the mistakes that can be made at a node."""

    def code(part: ast.expr) -> str:
        return ast.get_source_segment(source, part) or ""

    match node:
        case ast.Compare(left, [operator], [right]):
            return [(node, f"({code(left)}) {COMPARISONS[type(operator).__name__]} ({code(right)})")]
        case ast.BinOp(left, operator, right) if other := OPERATORS.get(type(operator).__name__):
            return [(node, f"({code(left)}) {other} ({code(right)})")]
        case ast.BoolOp(operator, [first, second]):
            return [(node, f"({code(first)}) {'or' if isinstance(operator, ast.And) else 'and'} ({code(second)})")]
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            return [(node, f"({code(operand)})")]
        case ast.Constant(bool() as value):
            return [(node, str(not value))]
        case ast.Constant(int() | float() as value):
            return [(node, repr(value + 1))]
        case ast.If(test) | ast.IfExp(test) if isinstance(test, ast.Name | ast.Attribute | ast.Call):
            return [(test, f"(not {code(test)})")]
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            return [(value, "None")]
    return []


def copy_of_tree(folder: Path) -> Path:
    """Copy what tests need, what was compiled included; what is ignored otherwise stays."""
    ignored = shutil.ignore_patterns(".*", "__pycache__", "triage-case*", "*.egg-info")
    return Path(shutil.copytree(ROOT, folder, ignore=ignored))


def tests_near(place: Path) -> list[str]:
    """Return the test files that belong to a file, else its neighbours'."""
    own = affected.tests_of({affected.module_name(ROOT / place)})
    found = own or itertools.islice(affected.nearest([ROOT / place]), NEIGHBOURS)
    return [str(file.relative_to(ROOT)) for file in found]


def outcome(tree: Path, mistake: Mistake, tests: list[str], broken: set[str]) -> str:
    """Return what the tests make of a mistake: ``killed``, ``hangs``, ``lives``, ``no tests``, or ``unsound`` ones.

    Tests that fail without the mistake are added to ``broken``.
    """
    place, _, _, _, text = mistake
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree / "worker")])}

    def ended(*more: str) -> tuple[int | None, list[str]]:
        command = [sys.executable, "-m", "pytest", "-qx", "-n0", "-rfE", "--randomly-seed=1", *tests, *more]
        command += [f"--deselect={name}" for name in sorted(broken)]
        try:
            done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=SECONDS, text=True)
            return done.returncode, FAILED.findall(done.stdout)
        except subprocess.TimeoutExpired:
            return None, []

    for _ in range(ATTEMPTS):
        (tree / place).write_text(text, encoding="utf-8")
        try:
            code, _ = ended("--cache-clear")
        finally:
            shutil.copyfile(ROOT / place, tree / place)
        if code in (0, NO_TESTS):
            return "no tests" if code else "lives"
        again, anyway = ended("--last-failed", "--last-failed-no-failures=none")
        if again in (0, NO_TESTS):
            return "hangs" if code is None else "killed"
        broken.update(anyway)
    return "unsound"


if __name__ == "__main__":
    main()
