"""What is said of outputs that a program saved. They are those of the same network, written otherwise by hand."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage.inputs.feed import Feed, Origin
from tensortriage_meanings.saved import understood_otherwise

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
NET = "g (float[3,4] x) => (float[3,4] y) { [act] a = LeakyRelu<alpha=ONE>(x) [y] y = Softmax<axis=1>(a) }"


@pytest.mark.parametrize(("alpha", "told"), [("0.2", "LeakyRelu 'act' as if alpha were 0.2"), ("0.137", "")])
def test_a_row_of_the_table_is_told_of_saved_outputs(alpha, told):
    theirs = run(model(NET.replace("ONE", alpha)), x=X)
    found = understood_otherwise(
        model(NET.replace("ONE", "0.01")),
        Feed("inputs", {"x": X}, Origin.REAL),
        {"y": theirs},
        run=lambda changed: {"y": run(changed, x=X)},
        limits=lambda changed, made: {"y": 1e-6} if np.abs(made["y"] - theirs).max() <= 1e-6 else None,
    )
    assert found.startswith(f"the program that saved them computes {told}") if told else not found
