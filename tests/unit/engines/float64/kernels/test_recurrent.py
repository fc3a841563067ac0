"""Relations between directions, lengths and layouts; the numbers themselves are tested by the ONNX examples."""

import numpy as np
import pytest

from tensortriage.engines.float64.kernels import Call, kernel_for

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTH, BATCH, INPUT, HIDDEN = 5, 3, 4, 2


def weights(op_type, directions, seed=0):
    rng = np.random.default_rng(seed)
    gates = GATES[op_type]
    return [
        rng.standard_normal((directions, gates * HIDDEN, INPUT)),
        rng.standard_normal((directions, gates * HIDDEN, HIDDEN)),
        rng.standard_normal((directions, 2 * gates * HIDDEN)),
    ]


def run(op_type, inputs, **attributes):
    outputs = 3 if op_type == "LSTM" else 2
    return kernel_for(op_type)(Call(op_type, 21, tuple(inputs), attributes, outputs))


@pytest.fixture
def x():
    return np.random.default_rng(9).standard_normal((LENGTH, BATCH, INPUT))


@pytest.mark.parametrize("op_type", GATES)
def test_reverse_is_forward_on_the_reversed_sequence(op_type, x):
    w = weights(op_type, 1)
    forward = run(op_type, [x[::-1], *w])
    reverse = run(op_type, [x, *w], direction="reverse")
    assert np.array_equal(reverse[0], forward[0][::-1])
    assert np.array_equal(reverse[1], forward[1])


@pytest.mark.parametrize("op_type", GATES)
def test_bidirectional_is_both(op_type, x):
    w = weights(op_type, 2)
    both = run(op_type, [x, *w], direction="bidirectional")
    for d, direction in enumerate(["forward", "reverse"]):
        one = run(op_type, [x, *(part[d : d + 1] for part in w)], direction=direction)
        assert np.array_equal(both[0][:, d], one[0][:, 0])
        assert np.array_equal(both[1][d], one[1][0])


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_short_sequences_are_as_if_run_alone(op_type, direction, x):
    w, lengths = weights(op_type, 1), np.array([5, 2, 3], np.int32)
    together = run(op_type, [x, *w, lengths], direction=direction)
    for row, length in enumerate(lengths):
        alone = run(op_type, [x[:length, row : row + 1], *w], direction=direction)
        assert np.allclose(together[0][:length, :, row], alone[0][:, :, 0], rtol=1e-11, atol=0)
        assert not together[0][length:, :, row].any()
        assert np.allclose(together[1][:, row], alone[1][:, 0], rtol=1e-11, atol=0)


@pytest.mark.parametrize("op_type", GATES)
def test_batch_first_layout(op_type, x):
    w = weights(op_type, 1)
    start = np.random.default_rng(3).standard_normal((1, BATCH, HIDDEN))
    time_first = run(op_type, [x, *w, None, start])
    batch_first = run(op_type, [x.swapaxes(0, 1), *w, None, start.swapaxes(0, 1)], layout=1)
    assert np.array_equal(batch_first[0], time_first[0].transpose(2, 0, 1, 3))
    assert np.array_equal(batch_first[1], time_first[1].swapaxes(0, 1))


def test_one_step_of_rnn_by_hand():
    w, r, b = np.array([[[2.0]]]), np.array([[[3.0]]]), np.array([[0.25, 0.5]])
    start = np.array([[[0.125]]])
    y, last = run("RNN", [np.array([[[0.5]]]), w, r, b, None, start], activations=("Affine",), activation_alpha=(2.0,))
    assert y.item() == last.item() == 2.0 * (0.5 * 2 + 0.125 * 3 + 0.75)
