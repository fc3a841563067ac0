"""Which share of small mistakes in the code that judges do the tests find?

    python bench/mutation.py [--count 200] [--seed 1] [--tests test|lengthy|both] [--workers 2]

Draws lines of `compare`, `envelope`, `diagnose`, `search` and `model`, and makes a mistake in each, one at a time, in a
copy of the tree: another comparison, operator or constant, a condition turned round, a result left out. Then the tests
run that belong to the file, in the place that mirrors it or importing it: those of `make test`, of `make lengthy`, or
both. What fails has to pass without the mistake, or it is no find. A seed draws the same mistakes of the same code.
"""

import argparse
import ast
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import affected  # noqa: E402

PACKAGES = ("compare", "envelope", "diagnose", "search", "model")
MARKERS = {"test": ["-m", "not lengthy"], "lengthy": ["-m", "lengthy"], "both": []}
SECONDS = 900.0
"""Longest run of the tests of one file; what takes longer hangs, which is a find."""
NO_TESTS, NEIGHBOURS = 5, 8
"""Exit code of pytest; how many test files of the package and its users are asked where none is the file's own."""
COMPARISONS = {"Lt": "<=", "LtE": "<", "Gt": ">=", "GtE": ">", "Eq": "!=", "NotEq": "==", "Is": "is not", "IsNot": "is"}
COMPARISONS |= {"In": "not in", "NotIn": "in"}
OPERATORS = {"Add": "-", "Sub": "+", "Mult": "/", "Div": "*", "FloorDiv": "*", "Mod": "*", "Pow": "*", "BitOr": "&"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", choices=MARKERS, default="test")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    outcomes, drawn = [], mistakes(random.Random(arguments.seed))[: arguments.count]
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_tree(Path(folder))
        for place, line, before, after, text in drawn:
            own = affected.tests_of({affected.module_name(ROOT / place)})
            found = own or itertools.islice(affected.nearest([ROOT / place]), NEIGHBOURS)
            files = [file.relative_to(ROOT) for file in found]
            (tree / place).write_text(text, encoding="utf-8")
            try:
                outcomes.append(outcome(tree, place, files, arguments) if files else "no tests")
            finally:
                shutil.copyfile(ROOT / place, tree / place)
            print(f"{outcomes[-1]:9s} {place}:{line}  {before} -> {after}", flush=True)
    killed = outcomes.count("killed") + outcomes.count("hangs")
    print(f"{killed} of {len(outcomes)} killed ({killed / max(len(outcomes), 1):.0%}) by {arguments.tests}")


def mistakes(draw: random.Random) -> list[tuple[Path, int, str, str, str]]:
    """Return one mistake a line in drawn order: file, line, what is replaced by what, and the file's text with it."""
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
    return Path(shutil.copytree(ROOT, folder / "tree", ignore=ignored))


def outcome(tree: Path, place: Path, files: list[Path], arguments: argparse.Namespace) -> str:
    """Return what the tests make of a mistake: ``killed``, ``hangs``, ``lives``, ``no tests``, or ``unsound`` ones."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree / "worker")])}
    command = [sys.executable, "-m", "pytest", "-qx", f"-n{arguments.workers}", "--randomly-seed=1", *map(str, files)]
    command += MARKERS[arguments.tests]

    def ended(*more: str) -> int | None:
        try:
            done = subprocess.run([*command, *more], cwd=tree, env=environment, capture_output=True, timeout=SECONDS)
            return done.returncode
        except subprocess.TimeoutExpired:
            return None

    code = ended("--cache-clear")
    if code in (0, NO_TESTS):
        return "no tests" if code else "lives"
    shutil.copyfile(ROOT / place, tree / place)
    if ended("--last-failed", "--last-failed-no-failures=none") not in (0, NO_TESTS):
        return "unsound"
    return "hangs" if code is None else "killed"


if __name__ == "__main__":
    main()
