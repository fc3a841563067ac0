import numpy as np

from models import parse
from running import run
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.inject_error import ERROR_PREFIX, perturb

TEXT = "g (float[2] x) => (float[2] p, float[2] y) { [a] p = Neg(x) [b] y = Mul(p, p) }"


def test_the_error_is_added_for_users_and_outputs():
    model = parse(TEXT)
    made = perturb(model, ["p"], specs=value_specs(model))
    x, error = np.float32([1, 2]), np.float32([0.5, 0])
    found = run(made, {"x": x, f"{ERROR_PREFIX}p": error})
    np.testing.assert_array_equal(found["p"], -x + error)
    np.testing.assert_array_equal(found["y"], (-x + error) ** 2)


def test_without_error_nothing_changes():
    model = parse(TEXT)
    feed = {"x": np.float32([3, -4])}
    made = run(perturb(model, ["p"], specs=value_specs(model)), {**feed, f"{ERROR_PREFIX}p": np.zeros(2, np.float32)})
    for name, array in run(model, feed).items():
        np.testing.assert_array_equal(made[name], array)


def test_nodes_that_are_spared_see_what_was_computed():
    model = parse("g (float[2] x) => (float[2] y, float[2] z) { [a] p = Neg(x) [b] y = Neg(p) [c] z = Neg(p) }")
    made = perturb(model, ["p"], specs=value_specs(model), sparing=["b"])
    x, error = np.float32([1, 2]), np.float32([4, 8])
    found = run(made, {"x": x, f"{ERROR_PREFIX}p": error})
    np.testing.assert_array_equal(found["y"], x)
    np.testing.assert_array_equal(found["z"], x - error)
