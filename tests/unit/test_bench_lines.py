"""Lines of code are counted as bench/lines.py says, and a core above its budget is an error."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "lines.py"
MODULE = '''"""A module."""

import os
from pathlib import (
    Path,
)

# A comment.
A = 1
"""What it is."""


def two(
    a,
):
    """Text
    of two lines."""
    text = """one
two"""  # of code, as strings are that document nothing

    return text
'''


@pytest.fixture
def lines(monkeypatch, tmp_path):
    """The script, of a product of one core module and one next to it."""
    spec = importlib.util.spec_from_file_location("bench_lines", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for place in ("src/tensortriage/model", "src/tensortriage_fleet"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "module.py").write_text(MODULE)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PRODUCT", (tmp_path / "src", tmp_path / "worker"))
    return module


def test_docstrings_comments_and_imports_are_no_code(lines):
    assert lines.lines_of_code(MODULE) == 7


@pytest.mark.parametrize(("budget", "fails"), [(7, False), (6, True)])
def test_a_core_above_its_budget_is_an_error(lines, monkeypatch, capsys, budget, fails):
    monkeypatch.setattr(lines, "CORE_BUDGET", budget)
    monkeypatch.setattr(sys, "argv", ["lines.py", "--check"])
    if fails:
        with pytest.raises(SystemExit, match="the core has 7 lines of code, and may have 6"):
            lines.main()
    else:
        lines.main()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["7"]
