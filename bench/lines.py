"""Lines of code by package: neither blank, comment, docstring nor import.

    python bench/lines.py [--by-file] [PATH ...]

A line counts when a token of code begins or continues on it; docstrings, comments and import statements do not. One
row a package of `src/tensortriage`, one for `triage batch`, one for the optional engines with their halves in the
worker, and one for the rest of the worker; the last is the sum.
"""

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {"tensortriage_worker": "worker", "tensortriage_batch": "batch", "tensortriage_engines": "optional engines"}
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
    for row in sorted(code, key=lambda row: -code[row]):
        print(f"{code[row]:7d} {whole[row]:7d} {files[row]:5d}  {row}")
    print(f"{code.total():7d} {whole.total():7d} {files.total():5d}  in all (code, lines, files)")


def package_of(path: Path) -> str:
    """Return the package of the product that a module belongs to."""
    parts = path.parts
    for package in OUTSIDE:
        if package in parts:
            return OUTSIDE[package]
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
