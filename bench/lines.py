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
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = (ROOT / "src", ROOT / "worker")
CORE = ("tensortriage", "tensortriage_worker")
CORE_BUDGET = 48_330
"""Lines of code that the core may have. Who takes lines out lowers it."""

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=PRODUCT)
    parser.add_argument("--by-file", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail when the core has more lines than its budget")
    arguments = parser.parse_args()
    paths = PRODUCT if arguments.check else arguments.paths
    rows, sums = dict[str, Counter[str]](), dict[str, Counter[str]]()
    for path in (found for root in paths for found in sorted(root.resolve().rglob("*.py"))):
        text = path.read_text(encoding="utf-8")
        counted = {"code": lines_of_code(text), "lines": text.count("\n"), "files": 1}
        row, package = (str(path) if arguments.by_file else row_of(path)), package_of(path)
        rows.setdefault(row, Counter()).update(counted)
        if package:
            sums.setdefault("the core" if package in CORE else "beside the core", Counter()).update(counted)
        sums.setdefault("in all", Counter()).update(counted)
    for row in sorted(rows, key=lambda row: -rows[row]["code"]) if not arguments.check else ():
        print(_line(row, rows[row]))
    for part in ("the core", "beside the core", "in all"):
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
    """Return how many lines of a module's text hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif documented:
            for each in node.body:  # attribute docstrings as well
                if (
                    isinstance(each, ast.Expr)
                    and isinstance(each.value, ast.Constant)
                    and isinstance(each.value.value, str)
                ):
                    lines.difference_update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return len(lines)


if __name__ == "__main__":
    main()
