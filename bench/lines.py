"""Lines of code by package: neither blank, comment, docstring nor import.

    python bench/lines.py [--by-file] [PATH ...]
    python bench/lines.py --check

A line counts when a token of code begins or continues on it; docstrings, comments and import statements do not. One
row for each folder of `src/tensortriage`, each package next to it, and the worker; then the core (`src/tensortriage`
and `worker`), what stands next to it, and all. ``--check``, part of ``make lint``, fails when the core is larger than
its budget: a feature that needs more lines takes as many out, or stands beside the core.
"""

import argparse
import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = (ROOT / "src", ROOT / "worker")
CORE = ("tensortriage", "tensortriage_worker")
CORE_BUDGET = 48_000
"""Lines of code that the core may have. Who takes lines out lowers it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=PRODUCT)
    parser.add_argument("--by-file", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail when the core has more lines than its budget")
    arguments = parser.parse_args()
    paths = PRODUCT if arguments.check else arguments.paths
    rows, sums = dict[str, Counter[str]](), dict[str, Counter[str]]()
    for path in (found for root in paths for found in sorted(root.resolve().rglob("*.py"))):
        if arguments.check and package_of(path) not in CORE:
            continue
        text = path.read_text(encoding="utf-8")
        counted = {"code": lines_of_code(text), "lines": text.count("\n"), "files": 1}
        row, package = (str(path) if arguments.by_file else row_of(path)), package_of(path)
        rows.setdefault(row, Counter()).update(counted)
        if package:
            sums.setdefault("the core" if package in CORE else "beside the core", Counter()).update(counted)
        sums.setdefault("in all", Counter()).update(counted)
    for row in sorted(rows, key=lambda row: -rows[row]["code"]) if not arguments.check else ():
        print(_line(row, rows[row]))
    for part in ("the core",) if arguments.check else ("the core", "beside the core", "in all"):
        if part in sums:
            print(_line(f"{part} (code, lines, files)", sums[part]))
    if arguments.check and sums["the core"]["code"] > CORE_BUDGET:
        sys.exit(f"the core has {sums['the core']['code']} lines of code, and may have {CORE_BUDGET} (bench/lines.py): "
                 "take out as many as you put in, or put the new code beside the core")  # fmt: skip


def _line(name: str, counted: Counter[str]) -> str:
    return f"{counted['code']:7d} {counted['lines']:7d} {counted['files']:5d}  {name}"


def package_of(path: Path) -> str:
    """Return the package of the product that a module belongs to; empty for a module that is not of the product."""
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else path.parts
    return next((part for part in parts if part.startswith("tensortriage")), "")


def row_of(path: Path) -> str:
    """Return what a module is counted with: a folder of `tensortriage`, a package next to it, or its folder."""
    package = package_of(path)
    if package != "tensortriage":
        return package or path.parent.name
    below = path.parts[path.parts.index(package) + 1 :]
    return below[0] if len(below) > 1 else package


def lines_of_code(text: str) -> int:
    """Return how many lines of a module's text hold code: of those in texts of several lines, also empty ones."""
    written = {number for number, line in enumerate(text.split("\n"), 1) if line.strip() and line.lstrip()[0] != "#"}
    texts, others = set[int](), set[int]()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import() | ast.ImportFrom():
                others.update(_lines(node))
            case ast.Expr(value=ast.Constant(value=str())):  # docstrings, of attributes as well
                others.update(_lines(node))
            case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
                texts.update(_lines(node))
    return len((written | texts) - others)


def _lines(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


if __name__ == "__main__":
    main()
