"""Numbers that outputs show; the network is a product and a Tanh, so that what it makes is known."""

import numpy as np
import pytest

from tensortriage_feeds.search import is_a_factor
from tensortriage_feeds.solved_search import solved_candidates

RNG = np.random.default_rng(12)
TABLE = RNG.normal(1.0, 0.5, (16, 3)).astype(np.float32)
PICTURE = np.rint(RNG.random((1, 3, 6, 6)) * 255).astype(np.float32) / 255
WEIGHTS = {"table": RNG.standard_normal((3, 5)) / 2, "picture": RNG.standard_normal((108, 40)) / 8}


def run_on(name):
    def run(tensors):
        flat = tensors["x"].astype(np.float64)
        flat = flat if name == "table" else flat.reshape(1, -1)
        with np.errstate(all="ignore"):  # candidates that take a logarithm of 0
            return {"y": np.tanh(flat @ WEIGHTS[name])}

    return run


def found(name, mine, theirs):
    """Return what is solved for, the one that leaves least last, as far as it leaves nothing beyond fp32."""
    run = run_on(name)
    wanted = run({"x": theirs.astype(np.float32)})
    candidates = solved_candidates({"x": mine}, run, wanted, {"y": 1e-5}, seconds=20.0)
    return [step for step, left in sorted(candidates, key=lambda each: -each[1]) if left < 1e-5]


def test_means_and_deviations_of_a_program_s_own():
    """Standardized with n - 1 for n: a factor of each column, the square root of 15/16, and what is moved by it."""
    mean, deviation = TABLE.mean(0), TABLE.std(0)
    (step,) = found("table", TABLE, (TABLE - mean) * np.sqrt(15 / 16) + mean + 0.03 * deviation)
    np.testing.assert_allclose(np.broadcast_to(step.parameters["scale"], 3), np.sqrt(15 / 16), rtol=1e-3)
    assert not is_a_factor(step)


def test_a_gamma_that_is_none_of_the_usual_ones():
    *_, step = found("picture", PICTURE, PICTURE**1.37)
    assert (step.kind, step.parameters["gamma"]) == ("gamma", pytest.approx(1.37, rel=1e-3))


def test_one_factor_of_all_numbers_is_known_as_such_since_weights_may_have_it():
    steps = found("table", TABLE, TABLE * 1.07)
    assert steps
    assert all(map(is_a_factor, steps))


def test_what_comes_in_where_an_axis_is_moved_is_solved_for():
    frames = np.random.default_rng(4).standard_normal((1, 12, 5)).astype(np.float32)
    weights = np.random.default_rng(5).standard_normal((60, 90)) / 8

    def of(feed):
        return {"y": np.tanh(feed["x"].reshape(1, -1).astype(np.float64) @ weights)}

    made = np.concatenate([np.full((1, 1, 5), 0.7), frames[:, :-1]], 1).astype(np.float32)
    found = min(
        solved_candidates({"x": frames}, of, of({"x": made}), {"y": 1e-6}, seconds=20), key=lambda each: each[1]
    )
    assert (found[0].kind, found[0].parameters) == ("shifted", {"axis": 1, "shift": 1})
    assert found[0]({"x": frames})["x"] == pytest.approx(made, abs=1e-4)
