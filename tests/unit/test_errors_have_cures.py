"""An error without a cure leaves its reader alone."""

import ast
import re
from pathlib import Path

import pytest

from tensortriage import errors

SOURCE = Path(errors.__file__).parent
OPTIONAL = sorted(path for path in SOURCE.parent.glob("tensortriage_*") if path.is_dir() and "testing" not in path.name)
NAMES = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.TriageError)}
MADE = re.compile(rf"\b(?:{'|'.join(sorted(NAMES))})\(")
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if "testing" not in path.parts]  # engines that fail on purpose


def raised_without_cure(text):
    for node in ast.walk(ast.parse(text)) if MADE.search(text) else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
            cures = [word.value for word in node.keywords if word.arg == "cure"]
            if not cures or (isinstance(cures[0], ast.Constant) and not cures[0].value):
                yield node.lineno


def test_the_search_sees_one_without():
    (found,) = raised_without_cure("raise ModelError('no', slug='x')")
    assert found == 1


@pytest.mark.parametrize("package", sorted({SOURCE / path.relative_to(SOURCE).parts[0] for path in FILES}) + OPTIONAL)
def test_every_error_has_a_cure(package):
    files = [path for path in FILES if package in (path, *path.parents)] or sorted(package.rglob("*.py"))
    assert [f"{path}:{line}" for path in files for line in raised_without_cure(path.read_text())] == []
