"""What a recurrent layer becomes; expected values are those of each direction run apart, with the weights as said."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.recurrent import LOOPS, RECURRENT

BLOCKS = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN, STEPS = 2, 4
RNG = np.random.default_rng(2)
X = RNG.standard_normal((STEPS, 1, 3)).astype(np.float32)
STATE = RNG.standard_normal((2, 1, HIDDEN)).astype(np.float32)


def weights(op, directions=2, seed=3):
    rng = np.random.default_rng(seed)
    rows = BLOCKS[op] * HIDDEN
    shapes = {"w": (directions, rows, 3), "r": (directions, rows, HIDDEN), "b": (directions, 2 * rows)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def layer(op, arrays, *, direction="bidirectional", shown="y", more="", states="", lengths=False):
    """Return a layer that shows one of its results; ``states`` are its last inputs, a state or lengths of rows."""
    constants = ", ".join(
        f"float[{','.join(map(str, array.shape))}] {name} = {{{', '.join(f'{each:.9g}' for each in array.ravel())}}}"
        for name, array in arrays.items()
    )
    count = len(arrays["w"])
    state = ", int32[1] n" if lengths else f", float[{count},1,{HIDDEN}] s" if states else ""
    kind = f"float[{STEPS},{count},1,{HIDDEN}]" if shown == "y" else f"float[{count},1,{HIDDEN}]"
    return model(
        f"g (float[{STEPS},1,3] x{state}) => ({kind} {shown}) <{constants}> "
        f'{{ y, h = {op}<hidden_size={HIDDEN}, direction="{direction}"{more}>(x, w, r, b{states}) }}'
    )


def half(arrays, index):
    return {name: array[index : index + 1] for name, array in arrays.items()}


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(
    ("words", "forward", "backward"),
    [
        ("backward direction started from the initial state of the forward", STATE[:1], STATE[:1]),
        ("its backward direction started from zeros", STATE[:1], 0 * STATE[:1]),
        ("its forward direction started from zeros", 0 * STATE[:1], STATE[1:]),
        ("it started from zeros", 0 * STATE[:1], 0 * STATE[:1]),
    ],
)
def test_states_that_a_layer_starts_from(op, words, forward, backward):
    arrays = weights(op)
    found = run(meant(layer(op, arrays, states=", , s"), RECURRENT, words), x=X, s=STATE)
    for index, (way, state) in enumerate((("forward", forward), ("reverse", backward))):
        alone = run(layer(op, half(arrays, index), direction=way, states=", , s"), x=X, s=state)
        assert found[:, index : index + 1] == pytest.approx(alone, rel=1e-5, abs=1e-6)


def test_directions_with_other_weights():
    arrays = weights("LSTM")
    turned = {name: array[::-1] for name, array in arrays.items()}
    for words, other in {
        "each other's": turned,
        "had the weights of the forward": {name: array[[0, 0]] for name, array in arrays.items()},
        "had the weights of the backward": {name: array[[1, 1]] for name, array in arrays.items()},
    }.items():
        found = run(meant(layer("LSTM", arrays), RECURRENT, words), x=X)
        assert found == pytest.approx(run(layer("LSTM", other), x=X), rel=1e-6)


def test_a_backward_direction_in_the_order_of_computation():
    arrays = weights("GRU")
    found = run(meant(layer("GRU", arrays), RECURRENT, "order of computation"), x=X)
    plain = run(layer("GRU", arrays), x=X)
    assert found[:, 0] == pytest.approx(plain[:, 0], rel=1e-6)
    assert found[:, 1] == pytest.approx(plain[::-1, 1], rel=1e-6)


def test_the_last_state_of_a_backward_direction_at_the_last_step():
    arrays = weights("GRU")
    found = run(meant(layer("GRU", arrays, shown="h"), RECURRENT, "at the last step"), x=X)
    results = run(layer("GRU", arrays), x=X)
    assert found == pytest.approx(results[-1], rel=1e-6)  # which is what is wrong about it


def test_gates_in_the_order_of_another_framework():
    arrays = weights("GRU")
    swapped = {name: np.concatenate([a[:, 2:4], a[:, :2], a[:, 4:6]], axis=1) for name, a in arrays.items()}
    swapped["b"] = np.concatenate([swapped["b"], arrays["b"][:, 8:10], arrays["b"][:, 6:8], arrays["b"][:, 10:]], 1)
    found = run(meant(layer("GRU", arrays), RECURRENT, "its gates came"), x=X)
    assert found == pytest.approx(run(layer("GRU", swapped), x=X), rel=1e-6)
    found = run(meant(layer("GRU", arrays), RECURRENT, "gates of its backward direction came"), x=X)
    assert found[:, 0] == pytest.approx(run(layer("GRU", arrays), x=X)[:, 0], rel=1e-6)
    assert found[:, 1] == pytest.approx(run(layer("GRU", swapped), x=X)[:, 1], rel=1e-6)


def test_a_bias_that_is_left_out():
    arrays = weights("GRU", 1)
    arrays["b"][:, 6:] = 0
    whole = weights("GRU", 1, seed=4)
    given = {**arrays, "b": np.concatenate([arrays["b"][:, :6], whole["b"][:, 6:]], axis=1)}
    found = run(meant(layer("GRU", given, direction="forward"), RECURRENT, "(Rb) were left out"), x=X)
    assert found == pytest.approx(run(layer("GRU", arrays, direction="forward"), x=X), rel=1e-6)


def test_a_layer_without_a_gate():
    """With a forget gate of 1 cells are summed up; the other gates are Sigmoids, by ONNX's definition of LSTM."""
    arrays = weights("LSTM", 1)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    w, r, b = (arrays[name][0].astype(np.float64) for name in ("w", "r", "b"))
    h = c = np.zeros(HIDDEN)
    expected = []
    for step in X[:, 0].astype(np.float64):
        i, o, _, g = np.split(w @ step + r @ h + b[:8] + b[8:], 4)
        c = c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        expected.append(h)
    found = run(meant(layer("LSTM", arrays, direction="forward"), RECURRENT, "its forget gate were 1"), x=X)
    assert found.reshape(STEPS, HIDDEN) == pytest.approx(np.array(expected), rel=1e-5, abs=1e-6)


def test_hard_sigmoids_of_another_framework():
    arrays = weights("GRU", 1)
    hard = ', activations=["HardSigmoid", "Tanh"], activation_alpha=[0.2], activation_beta=[0.5]'
    found = run(meant(layer("GRU", arrays, direction="forward"), RECURRENT, "its gates were HardSigmoid"), x=X)
    assert found == pytest.approx(run(layer("GRU", arrays, direction="forward", more=hard), x=X), rel=1e-6)


def test_all_steps_of_a_short_row():
    arrays = weights("RNN", 1)
    one = layer("RNN", arrays, direction="forward", states=", n", lengths=True)
    found = run(meant(one, RECURRENT, "over all steps"), x=X, n=np.array([2], np.int32))
    assert found == pytest.approx(run(layer("RNN", arrays, direction="forward"), x=X), rel=1e-6)


FED = np.array([[1, 2], [3, 5], [7, 11]], np.float32)
LOOPED = """g (float[3,2] x, float[2] s, int64 n, bool c) => (float[3,2] y) {
    [l] end, y = Loop(n, c, s) <body = b (int64 i, bool on, float[2] h) => (bool go, float[2] next, float[2] was) {
        go = Identity(on)
        one = Gather<axis=0>(x, i)
        next = Add(h, one)
        was = Identity(h)
    }> }"""
SCANNED = """g (float[2] s, float[3,2] x) => (float[3,2] y) {
    [l] end, y = Scan(s, x) <num_scan_inputs = 1, body = b (float[2] h, float[2] one) => (float[2] next, float[2] out) {
        next = Add(h, one)
        out = Mul(next, one)
    }> }"""
BEGIN = np.array([100, 200], np.float32)
LOOPED_FEED = {"x": FED, "s": BEGIN, "n": np.array(3), "c": np.array(True)}
RUNNING = BEGIN + np.cumsum(FED, axis=0)


def test_a_loop_that_collects_its_state_after_the_update():
    made = run(meant(model(LOOPED), LOOPS, "collected the state 'next' at the end"), **LOOPED_FEED)
    assert made == pytest.approx(RUNNING)


def test_a_state_that_is_handed_on_as_it_was():
    made = run(meant(model(LOOPED), LOOPS, "handed on the state 'h' at the beginning"), **LOOPED_FEED)
    assert made == pytest.approx(np.stack([BEGIN] * 3))


def test_a_scan_that_collects_another_of_its_results():
    made = run(meant(model(SCANNED), LOOPS, "collected the state 'next' at the end"), x=FED, s=BEGIN)
    assert made == pytest.approx(RUNNING)


def test_a_shift_is_said_where_a_state_is_collected_before_or_after():
    words = [way.words for group in sites_of(Rewriter(model(LOOPED)), LOOPS) for way in group.values()]
    assert ["shifted by one iteration" in each for each in words if "collected" in each] == [True]
