"""RNN, GRU and LSTM: one step function each, one loop over time for all."""

from collections.abc import Callable, Sequence

import numpy as np

from tensortriage.engines.float64.function_accuracy import Functions
from tensortriage.engines.float64.kernels.call import Call, Output, kernel
from tensortriage.engines.float64.kernels.special import sigmoid

State = tuple[np.ndarray, ...]
Activation = Callable[[np.ndarray], np.ndarray]
Stepper = Callable[[np.ndarray, State], State]


_OPERATORS = {"tanh": "Tanh", "sigmoid": "Sigmoid", "elu": "Elu", "softplus": "Softplus"}
"""The operator that a recurrent layer uses as activation."""


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    def given(number: float | None, default: float) -> float:
        return default if number is None else number

    table: dict[str, Activation] = {
        "relu": lambda x: np.maximum(x, 0.0),
        "tanh": np.tanh,
        "sigmoid": sigmoid,
        "affine": lambda x: given(alpha, 1.0) * x + given(beta, 0.0),
        "leakyrelu": lambda x: np.where(x < 0, given(alpha, 0.01) * x, x),
        "thresholdedrelu": lambda x: np.where(x >= given(alpha, 1.0), x, 0.0),
        "scaledtanh": lambda x: given(alpha, 1.0) * np.tanh(given(beta, 1.0) * x),
        "hardsigmoid": lambda x: np.clip(given(alpha, 0.2) * x + given(beta, 0.5), 0.0, 1.0),
        "elu": lambda x: np.where(x < 0, given(alpha, 1.0) * np.expm1(x), x),
        "softsign": lambda x: x / (1.0 + np.abs(x)),
        "softplus": lambda x: np.logaddexp(0.0, x),
    }
    return table[name.lower()]


def _activations(call: Call, default: Sequence[str], direction: int) -> list[Activation]:
    """Return the activations of one direction, those of gates and new content after the node's clip.

    The clip is not put on the cell state before LSTM's output activation: the specification leaves it open, and ONNX
    Runtime does not.
    """
    names = list(call.get("activations") or (*default, *default))
    alphas, betas = list(call.get("activation_alpha") or ()), list(call.get("activation_beta") or ())
    made = []
    for i, name in enumerate(names):
        alpha = alphas[i] if i < len(alphas) else None
        exact = _activation(name, alpha, betas[i] if i < len(betas) else None)
        function = _approximated(name, exact, call.arithmetic.functions)
        made.append(_clipped(function, call.get("clip") if i % len(default) < 2 else None))
    return made[direction * len(default) : (direction + 1) * len(default)]


def _approximated(name: str, function: Activation, functions: Functions) -> Activation:
    """Return an activation as the hardware computes it."""
    error = functions.error(_OPERATORS.get(name.lower(), ""))
    return function if error is None else lambda x: error(function(x))


def _clipped(function: Activation, limit: float | None) -> Activation:
    return function if not limit else lambda x: function(np.clip(x, -limit, limit))


def _run(
    call: Call, default: Sequence[str], initial: Sequence[int], step_for: Callable[[int, list[Activation]], Stepper]
) -> tuple[np.ndarray, ...]:
    """Run the recurrence and return Y and the last states, cut to the outputs wanted.

    Args:
        call: The node's execution; inputs X, W, R, B, sequence_lens and the initial states are where all three
            operators have them.
        default: Default activations of one direction.
        initial: Input index of each initial state.
        step_for: From the direction's index and activations to its step function: (x at t, states) -> states.
    """
    batch_first = call.get("layout", 0)
    x = np.swapaxes(call[0], 0, 1) if batch_first else call[0]
    length, batch = x.shape[:2]
    hidden = call[2].shape[-1]
    lengths = np.full(batch, length) if call[4] is None else call[4].astype(np.int64)
    word = call.get("direction", "forward")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[word]
    y = np.zeros((length, len(backwards), batch, hidden))
    last: list[list[np.ndarray]] = [[] for _ in initial]
    for d, reverse in enumerate(backwards):
        states: State = tuple(_initial(call[i], d, batch, hidden, batch_first) for i in initial)
        step = step_for(d, _activations(call, default, d))
        for k in range(length):
            # Each sequence runs over its own length; backwards it starts at its own end.
            times = np.where(k < lengths, lengths - 1 - k, k) if reverse else np.full(batch, k)
            active = (k < lengths)[:, None]
            fresh = step(x[times, np.arange(batch)], states)
            states = tuple(np.where(active, new, old) for new, old in zip(fresh, states, strict=True))
            y[times, d, np.arange(batch)] = np.where(active, states[0], 0.0)
        for kept, state in zip(last, states, strict=True):
            kept.append(state)
    ends = [np.stack(states) for states in last]
    if batch_first:
        y, ends = y.transpose(2, 0, 1, 3), [np.swapaxes(end, 0, 1) for end in ends]
    return (y, *ends)[: call.outputs]


def _initial(given: np.ndarray | None, direction: int, batch: int, hidden: int, batch_first: int) -> np.ndarray:
    if given is None:
        return np.zeros((batch, hidden))
    return np.asarray(given[:, direction] if batch_first else given[direction])


def _biases(call: Call, direction: int, gates: int) -> tuple[np.ndarray, np.ndarray]:
    hidden = call[2].shape[-1]
    both = np.zeros(2 * gates * hidden) if call[3] is None else call[3][direction]
    return both[: gates * hidden], both[gates * hidden :]


@kernel("RNN")
def _rnn(call: Call) -> Output:
    """RNN: ``h = f(x W^T + h R^T + Wb + Rb)``; X (T, N, I), W (D, H, I), R (D, H, H), B (D, 2 H), y (T, D, N, H)."""

    def step_for(d: int, functions: list[Activation]) -> Stepper:
        w, r, matmul = call[1][d].T, call[2][d].T, call.arithmetic.products.matmul
        bias = sum(_biases(call, d, 1))
        return lambda x, states: (functions[0](matmul(x, w) + matmul(states[0], r) + bias),)

    return _run(call, ["Tanh"], [5], step_for)


@kernel("GRU")
def _gru(call: Call) -> Output:
    """GRU: gates z, r, h in this order; ``h = (1 - z) * g(x Wh^T + (r * h) Rh^T + ...) + z * h``.

    X (T, N, I), W (D, 3 H, I), R (D, 3 H, H), B (D, 6 H), y (T, D, N, H). With linear_before_reset the reset gate
    scales ``h Rh^T + Rbh`` instead of h.
    """

    def step_for(d: int, functions: list[Activation]) -> Stepper:
        w, r, matmul = call[1][d].T, call[2][d].T, call.arithmetic.products.matmul
        w_bias, r_bias = _biases(call, d, 3)
        hidden = r.shape[0]

        def step(x: np.ndarray, states: State) -> State:
            h = states[0]
            from_x = matmul(x, w) + w_bias
            from_h = matmul(h, r[:, : 2 * hidden]) + r_bias[: 2 * hidden]
            z = functions[0](from_x[:, :hidden] + from_h[:, :hidden])
            reset = functions[0](from_x[:, hidden : 2 * hidden] + from_h[:, hidden:])
            r_new, bias = r[:, 2 * hidden :], r_bias[2 * hidden :]
            if call.get("linear_before_reset", 0):
                candidate = reset * (matmul(h, r_new) + bias)
            else:
                candidate = matmul(reset * h, r_new) + bias
            new = functions[1](from_x[:, 2 * hidden :] + candidate)
            return ((1.0 - z) * new + z * h,)

        return step

    return _run(call, ["Sigmoid", "Tanh"], [5], step_for)


@kernel("LSTM")
def _lstm(call: Call) -> Output:
    """LSTM: gates i, o, f, c in this order; ``C = f * C + i * g(...)`` and ``h = o * h_act(C)``.

    X (T, N, I), W (D, 4 H, I), R (D, 4 H, H), B (D, 8 H), P (D, 3 H) for the peepholes i, o, f, y (T, D, N, H).
    """

    def step_for(d: int, functions: list[Activation]) -> Stepper:
        w, r, matmul = call[1][d].T, call[2][d].T, call.arithmetic.products.matmul
        bias = sum(_biases(call, d, 4))
        hidden = r.shape[0]
        peepholes = np.zeros(3 * hidden) if call[7] is None else call[7][d]
        p_i, p_o, p_f = np.split(peepholes, 3)

        def step(x: np.ndarray, states: State) -> State:
            h, c = states
            i, o, f, g = np.split(matmul(x, w) + matmul(h, r) + bias, 4, axis=1)
            i = functions[0](i + p_i * c)
            f = 1.0 - i if call.get("input_forget", 0) else functions[0](f + p_f * c)
            c = f * c + i * functions[1](g)
            return functions[0](o + p_o * c) * functions[2](c), c

        return step

    return _run(call, ["Sigmoid", "Tanh", "Tanh"], [5, 6], step_for)
