"""What a recurrent layer becomes with other activations; expected values are numpy's, step by step."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.recurrent import RECURRENT

RNG = np.random.default_rng(4)
X, W, R = (RNG.standard_normal(shape).astype(np.float32) for shape in ((5, 1, 3), (1, 2, 3), (1, 2, 2)))
FUNCTIONS = {
    "Relu": lambda x: np.maximum(x, 0), "none at all": lambda x: x, "Softsign": lambda x: x / (1 + np.abs(x)),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
}  # fmt: skip


def constant(array, name):
    shape = ",".join(map(str, array.shape))
    return f"float[{shape}] {name} = {{{', '.join(f'{each:.9g}' for each in array.ravel())}}}"


def rnn(attributes=""):
    return model(
        f"g (float[5,1,3] x) => (float[5,1,1,2] y) <{constant(W, 'w')}, {constant(R, 'r')}> "
        f"{{ y = RNN<hidden_size=2{attributes}>(x, w, r) }}"
    )


def stepped(function):
    state, found = np.zeros((1, 2)), []
    for x in X:
        state = function(x @ W[0].T + state @ R[0].T)
        found.append(state)
    return np.array(found)[:, None]


@pytest.mark.parametrize("words", FUNCTIONS)
def test_another_activation(words):
    changed = meant(rnn(), RECURRENT, f"its activation were {words}")
    assert run(changed, x=X) == pytest.approx(stepped(FUNCTIONS[words]), rel=1e-5, abs=1e-6)


def test_activations_that_are_given_are_left_out_or_lose_their_numbers():
    given = rnn(', activations=["HardSigmoid"], activation_alpha=[0.4], activation_beta=[0.3]')
    assert run(meant(given, RECURRENT, "the default ones"), x=X) == pytest.approx(stepped(np.tanh), rel=1e-5, abs=1e-6)
    alone = run(meant(given, RECURRENT, "activation_alpha and activation_beta"), x=X)
    assert alone == pytest.approx(stepped(FUNCTIONS["HardSigmoid"]), rel=1e-5, abs=1e-6)


def test_a_bidirectional_layer_has_the_activations_of_each_direction():
    arrays = ((np.repeat(W, 2, 0), "w"), (np.repeat(R, 2, 0), "r"))
    both = model(
        f"g (float[5,1,3] x) => (float[5,2,1,2] y) <{', '.join(constant(*each) for each in arrays)}> "
        '{ y = RNN<hidden_size=2, direction="bidirectional">(x, w, r) }'
    )
    found = run(meant(both, RECURRENT, "its activation were Relu"), x=X)
    assert found[:, :1] == pytest.approx(stepped(FUNCTIONS["Relu"]), rel=1e-5, abs=1e-6)
