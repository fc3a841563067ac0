"""Lines of code by package: neither blank, comment, docstring nor import.

    python bench/lines.py [--by-file] [PATH ...]

A line counts when a token of code begins or continues on it; docstrings, comments and import statements do not. One
row a package of `src/tensortriage`, one for the worker, and one for each package beside the core. The core is
`src/tensortriage` with the worker, but for halves of the worker that are in the packages beside it.
"""

import argparse
import ast
import io
import tokenize
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKER, BESIDE = "tensortriage_worker", "tensortriage_"
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "src", ROOT / "worker"])
    parser.add_argument("--by-file", action="store_true")
    arguments = parser.parse_args()
    code, whole, files = Counter[str](), Counter[str](), Counter[str]()
    for path in (found for root in arguments.paths for found in sorted(root.resolve().rglob("*.py"))):
        text, row = path.read_text(encoding="utf-8"), str(path) if arguments.by_file else package_of(path)
        code[row] += lines_of_code(text)
        whole[row] += text.count("\n")
        files[row] += 1

    def show(rows: Sequence[str], text: str) -> None:
        counts = [sum(each[row] for row in rows) for each in (code, whole, files)]
        print("{:7d} {:7d} {:5d}  {}".format(*counts, text))

    order = sorted(code, key=lambda row: -code[row])
    core, beside = ([row for row in order if row.startswith(BESIDE) is side] for side in (False, True))
    for row in (*core, *beside):
        show([row], row)
    if not arguments.by_file:
        show(core, "core (code, lines, files)")
    show(order, "in all (code, lines, files)")


def package_of(path: Path) -> str:
    """Return the package of the product that a module belongs to."""
    parts = path.parts
    beside = next((part for part in parts if part.startswith(BESIDE)), None)
    if beside is not None:
        return "worker" if beside == WORKER else beside
    if "tensortriage" not in parts:
        return path.parent.name
    below = parts[parts.index("tensortriage") + 1 :]
    return below[0] if len(below) > 1 else "tensortriage"


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
