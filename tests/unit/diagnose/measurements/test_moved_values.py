"""Orders that are recognised, and what must not be taken for one. Expected axes follow from how the target is made."""

import numpy as np
import pytest

from tensortriage.diagnose.measurements.moved_values import exchanged, moved, recognised

RNG = np.random.default_rng(5)
IMAGE = RNG.standard_normal((2, 6, 8, 8)).astype(np.float32)


@pytest.mark.parametrize(
    ("target", "slug", "axes"),
    [
        (IMAGE.swapaxes(2, 3), "transposition", [0, 1, 3, 2]),
        (np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1)).reshape(IMAGE.shape), "layout", [0, 2, 3, 1]),
        (IMAGE.transpose(0, 2, 3, 1), "transposition", [0, 2, 3, 1]),
        (IMAGE[:, :, ::-1], "reordering", None),
        (IMAGE[:, [1, 0, 3, 2, 5, 4]], "reordering", None),
        (IMAGE.reshape(12, 64), "shape", None),
    ],
    ids=["swapped", "nhwc-read-as-nchw", "nhwc", "flipped", "channels", "reshaped"],
)
@pytest.mark.parametrize("noise", [0.0, 2.0**-9], ids=["exact", "bf16"])
def test_an_order_is_recognised_under_rounding(target, slug, axes, noise):
    target = (target * (1 + noise * RNG.uniform(-1, 1, target.shape))).astype(np.float32)
    found = moved(IMAGE, target, floor=noise)
    assert found is not None
    assert found.slug == slug
    assert axes is None or found.evidence["axes"] == axes


@pytest.mark.parametrize(
    "target",
    [
        IMAGE * 1.01,
        np.roll(IMAGE, 1, axis=2),
        IMAGE + 0.1 * RNG.standard_normal(IMAGE.shape).astype(np.float32),
        RNG.permutation(IMAGE.reshape(-1) * 1.5).reshape(IMAGE.shape),
        IMAGE[:1],
    ],
    ids=["scaled", "shifted", "noisy", "scaled-and-shuffled", "another-size"],
)
def test_other_errors_are_no_order(target):
    assert moved(IMAGE, target) is None


def test_a_transposed_softmax_is_transposed_though_it_looks_like_one_of_the_wrong_axis():
    weights = np.exp(IMAGE) / np.exp(IMAGE).sum(axis=-1, keepdims=True)
    found = moved(weights, weights.swapaxes(2, 3))
    assert found is not None
    assert found.slug == "transposition"
    other = np.exp(IMAGE) / np.exp(IMAGE).sum(axis=-2, keepdims=True)
    assert moved(weights, other) is None  # this is the wrong axis


def test_exchanged_outputs_are_a_permutation_within_limits():
    one, two, three = (RNG.standard_normal((4, 4)).astype(np.float32) for _ in range(3))
    reference = {"one": one, "two": two, "three": three}
    limits = dict.fromkeys(reference, 1e-6)
    assert exchanged(reference, {"one": two, "two": three, "three": one}, limits) == {
        "one": "two", "two": "three", "three": "one",
    }  # fmt: skip
    assert exchanged(reference, {"one": two, "two": one}, limits) == {"one": "two", "two": "one"}
    assert exchanged(reference, {"one": two}, limits) == {}  # 'two' itself is right: a copy, not an exchange
    assert exchanged(reference, {"one": two * 1.01, "two": one}, limits) == {}


def test_outputs_of_other_names_are_recognised_by_value_and_only_then():
    reference = {"a": IMAGE, "b": np.exp(IMAGE)}
    found = recognised(reference, {"x": IMAGE.transpose(0, 2, 3, 1), "b": np.exp(IMAGE)})
    assert found == "'x' holds 'a' transposed"
    assert recognised(reference, {"x": RNG.standard_normal(IMAGE.shape).astype(np.float32)}) == ""
    assert recognised({"s": np.array(["text"])}, {"x": np.array(["text"])}) == ""
