"""No verdict states a confidence that is not in the table."""

import ast
from pathlib import Path

import pytest

from tensortriage.diagnose import ladder
from tensortriage.diagnose.state import confidence
from tensortriage.diagnose.state.confidence import Confidence, blamed, unfailing

DIAGNOSE = Path(ladder.__file__).parent
TABLE = Path(confidence.__file__)


def stated(tree):
    """Yield what conclusions are told of their confidence: the second argument, and whatever is called so."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Conclusion")):
                yield from node.args[1:2]
            case ast.keyword(arg="confidence"):
                yield node.value
            case ast.Assign() if "confidence" in " ".join(map(ast.unparse, node.targets)):
                yield node.value
            case ast.AnnAssign(target=ast.Name(id="confidence"), value=ast.expr() as value):
                yield value


def test_no_confidence_is_a_number_where_it_is_used():
    seen = 0
    for path in sorted(set(DIAGNOSE.rglob("*.py")) - {TABLE}):
        for value in stated(ast.parse(path.read_text())):
            seen += 1
            numbers = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, float)]
            assert numbers == [], f"{path}: {ast.unparse(value)}"
    assert seen > 25


@pytest.mark.parametrize("name", [name for name, item in vars(confidence).items() if isinstance(item, Confidence)])
def test_every_row_has_a_reason_and_is_no_surer_on_random_data(name):
    row = getattr(confidence, name)
    assert 0.0 < row.random <= row.real <= 1.0
    assert len(row.reason) > 40


def test_confidence_grows_with_what_is_known():
    assert (blamed(0.0), blamed(1.0)) == (0.5, 1.0)
    assert unfailing(1, "random") < unfailing(1, "real") < unfailing(4, "real") < 1.0
