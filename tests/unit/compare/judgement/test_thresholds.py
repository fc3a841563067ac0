"""A number that decides has its reason: in the table those of errors, in the module that asks all others."""

import ast
from pathlib import Path

from tensortriage.compare.judgement import thresholds

SRC = Path(__file__).parents[4] / "src/tensortriage"
JUDGING = ("builds", "compare", "diagnose", "envelope", "precision", "reduce", "workflows")
CONFIDENCE = "diagnose/state/confidence.py"
COMPUTES = "compare/metrics"
"""Only here are floats bounds of rounding: it measures, and decides nothing."""
UNITS = ("SECONDS", "BYTES", "TIME_SHARE")
"""What a user pays, not what he is told."""


def test_a_number_that_decides_has_its_reason_below_it():
    """A float, or the least number of something; but for those that carry a unit of time or memory in their names."""
    found = []
    for file in (file for package in JUDGING for file in sorted((SRC / package).rglob("*.py"))):
        place = file.relative_to(SRC).as_posix()
        if place != CONFIDENCE and not place.startswith(COMPUTES):
            body = ast.parse(file.read_text(encoding="utf-8")).body
            found += [
                f"{place}: {name} = {number}"
                for node, below in zip(body, [*body[1:], None], strict=True)
                for name, number in constants_of(node)
                if decides(name, number) and not is_reason(below)
            ]
    assert found == []


def is_reason(node: ast.stmt | None) -> bool:
    constant = node.value if isinstance(node, ast.Expr) else None
    return isinstance(constant, ast.Constant) and isinstance(constant.value, str) and len(constant.value) > 60


def decides(name: str, number: float) -> bool:
    least = any(word in name.split("_") for word in ("LEAST", "FEWEST"))
    return (isinstance(number, float) or least) and not name.endswith(UNITS)


def constants_of(node: ast.stmt) -> list[tuple[str, float]]:
    """Return the names that a statement of a module gives to numbers, and these."""
    found = []
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        pairs = zip(target.elts, value.elts, strict=True) if isinstance(target, ast.Tuple) else [(target, value)]
        found += [(name.id, number_of(given)) for name, given in pairs if isinstance(name, ast.Name)]
    return [(name, number) for name, number in found if number is not None]


def number_of(node: ast.expr) -> float | None:
    """Return the number that an expression of literals is; None for anything else."""
    try:
        number = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
    except Exception:
        return None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else None


def test_every_number_of_the_table_is_used():
    """A threshold that nobody asks decides nothing."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in SRC.rglob("*.py") if "thresholds" not in file.name)
    names = [name for name in vars(thresholds) if name.isupper()]
    assert [name for name in names if name not in text] == []
