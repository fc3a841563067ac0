"""Tensors are recognised by value, or not at all. What should match is known: the targets are made here."""

import json
import math

import ml_dtypes
import numpy as np
import pytest

from tensortriage.compare.alignment.tensor_fingerprint import (
    FEWEST_RECOGNISED,
    PROJECTIONS,
    QUANTILES,
    Fingerprint,
    fingerprint,
)
from tensortriage.compare.alignment.value_matching import Relation, match
from tensortriage.compare.metrics.random_projection import project_rows, project_symmetric, signs
from tensortriage.errors import DataError, UsageError
from tensortriage.values import serial

RNG = np.random.default_rng(0)
TENSORS = {name: RNG.standard_normal((2, 12, 16)).astype(np.float32) for name in ("one", "two", "three", "four")}


def prints(tensors):
    return {name: fingerprint(array) for name, array in tensors.items()}


def matched(target, reference=None):
    return match(prints(reference or TENSORS), prints(target))


# --- sketches ---------------------------------------------------------------------------------------------------------


def test_signs_never_change():
    # Philox4x64-10 keyed by 5; a change would make stored fingerprints worthless.
    assert signs(5, 2).tolist() == signs(5, 2).tolist()
    assert set(np.unique(signs(1000, 3))) == {-1.0, 1.0}
    assert abs(signs(4096, 8).mean()) < 0.03


@pytest.mark.parametrize("length", [7, 4096, 4097, 10000])
def test_projections_estimate_distances(length):
    rows = np.random.default_rng(length).standard_normal((20, length))
    found = project_rows(rows, 512)
    for one, other in ((0, 1), (3, 9)):
        expected = float(np.square(rows[one] - rows[other]).sum())
        estimate = float(np.square(found[one] - found[other]).mean())
        assert estimate == pytest.approx(expected, rel=0.35)


def test_symmetric_projections_do_not_see_transposing_nor_axes_of_one():
    array = RNG.standard_normal((3, 5, 4))
    found = project_symmetric(array, 8)
    for axes in ((2, 0, 1), (1, 2, 0), (0, 2, 1)):
        assert project_symmetric(array.transpose(axes), 8) == pytest.approx(found)
    assert project_symmetric(array[:, None, :, :, None], 8) == pytest.approx(found)
    assert project_symmetric(np.float64([[3.0]]), 2).tolist() == [3.0, 3.0]
    assert not np.allclose(project_symmetric(array[:, ::-1], 8), found)


# --- fingerprints -----------------------------------------------------------------------------------------------------


def test_a_fingerprint_is_small_and_json_able():
    found = fingerprint(TENSORS["one"])
    assert (found.shape, found.count, found.information) == ((2, 12, 16), 384, True)
    assert (len(found.in_order), len(found.symmetric), len(found.sorted_values)) == (
        PROJECTIONS,
        PROJECTIONS,
        QUANTILES,
    )
    assert found.rms == pytest.approx(float(np.sqrt(np.mean(np.square(TENSORS["one"], dtype=np.float64)))))
    text = serial.to_json(found)
    assert len(text) < 3000
    assert json.loads(text)
    assert serial.from_json(text, Fingerprint) == found


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 100)),
        np.full(1000, 3.5, np.float32),
        RNG.standard_normal(FEWEST_RECOGNISED - 1),
        np.zeros((0, 3)),
        np.float32(3),
        1 + 1e-5 * RNG.standard_normal(1000),
        np.where(np.arange(1000) == 5, 1.0, 0.0),
        np.full(100, np.nan),
        np.ones((8, 8), bool),
    ],
    ids=["zero", "constant", "tiny", "empty", "scalar", "nearly constant", "one element", "NaN", "bool"],
)
def test_what_says_nothing_cannot_be_recognised(array):
    found = fingerprint(array)
    assert not found.information
    assert match({"it": found}, {"that": found}) == {}


def test_extreme_numbers_do_not_overflow():
    found = fingerprint(RNG.standard_normal(100) * 1e300)
    assert math.isfinite(found.rms)
    assert found.information


def test_strings_and_complex_numbers_have_no_fingerprint():
    for array in (np.array(["a"] * 50, object), np.zeros(50, np.complex64)):
        with pytest.raises(DataError) as caught:
            fingerprint(array)
        assert caught.value.slug == "dtype-mismatch"


# --- matches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "relation", "scale"),
    [
        (lambda x: x, Relation.EQUAL, 1.0),
        (lambda x: x.astype(ml_dtypes.bfloat16), Relation.EQUAL, 1.0),
        (lambda x: x.astype(np.float16), Relation.EQUAL, 1.0),
        (lambda x: x.reshape(24, 16), Relation.RESHAPED, 1.0),
        (lambda x: x.transpose(2, 0, 1), Relation.TRANSPOSED, 1.0),
        (lambda x: x.transpose(1, 2, 0).astype(ml_dtypes.bfloat16), Relation.TRANSPOSED, 1.0),
        (lambda x: 0.125 * x, Relation.EQUAL, 0.125),
        (lambda x: -x, Relation.EQUAL, -1.0),
        (lambda x: np.random.default_rng(1).permutation(x.reshape(-1)), Relation.REORDERED, 1.0),
    ],
    ids=["equal", "bf16", "fp16", "reshaped", "transposed", "bf16 transposed", "scaled", "negated", "shuffled"],
)
def test_renamed_tensors_are_matched(change, relation, scale):
    found = matched({f"engine::{name}": change(array) for name, array in TENSORS.items()})
    assert {name: made.reference for name, made in found.items()} == {f"engine::{name}": name for name in TENSORS}
    for made in found.values():
        assert made.relation is relation
        assert made.scale == pytest.approx(scale, rel=1e-3)
        assert made.aliases == ()


def test_a_missing_counterpart_is_no_match():
    reference = {name: array for name, array in TENSORS.items() if name != "two"}
    assert list(match(prints(reference), prints(TENSORS))) == ["one", "three", "four"]
    assert {made.reference for made in match(prints(TENSORS), prints(reference)).values()} == set(reference)


def test_tensors_with_the_same_values_are_aliases():
    reference = TENSORS | {"reshaped": TENSORS["one"].reshape(24, 16), "transposed": TENSORS["one"].transpose(0, 2, 1)}
    found = matched({"x": TENSORS["one"], "y": TENSORS["one"].reshape(24, 16)}, reference)
    assert found["x"].reference == "one"
    assert set(found["x"].aliases) == {"reshaped", "transposed"}
    assert found["y"].reference == "reshaped"


def test_neighbours_closer_than_the_rounding_are_told_by_no_name():
    noise = 3e-3 * RNG.standard_normal(TENSORS["one"].shape)
    reference = {**TENSORS, "neighbour": TENSORS["one"] * (1 + noise)}
    halfway = TENSORS["one"] * (1 + 0.5 * noise)
    assert match(prints(reference), prints({"x": halfway})) == {}


def test_a_factor_tells_siblings_apart():
    reference = TENSORS | {"eighth": TENSORS["one"] / 8}
    found = matched({"x": TENSORS["one"], "y": TENSORS["one"] / 8, "z": TENSORS["one"] / 3}, reference)
    assert (found["x"].reference, found["x"].scale) == ("one", 1.0)
    assert (found["y"].reference, found["y"].scale) == ("eighth", 1.0)
    assert "z" not in found


def test_the_nearer_of_two_claims_wins():
    near = TENSORS["one"] * (1 + 1e-4 * RNG.standard_normal(TENSORS["one"].shape))
    far = TENSORS["one"] * (1 + 5e-2 * RNG.standard_normal(TENSORS["one"].shape))
    assert set(matched({"near": near, "far": far})) == {"near"}


def test_one_tensor_may_have_copies():
    found = matched({"x": TENSORS["one"], "copy": TENSORS["one"].copy(), "flat": TENSORS["one"].reshape(-1)})
    assert {made.reference for made in found.values()} == {"one"}
    assert len(found) == 3


@pytest.mark.parametrize("confidence", [0.0, 0.4, 1.0, 2.0, float("nan")])
def test_a_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(UsageError) as caught:
        match({}, {}, confidence=confidence)
    assert caught.value.slug == "confidence-range"


def test_nothing_matches_nothing():
    assert match({}, prints(TENSORS)) == match(prints(TENSORS), {}) == {}


def test_more_confidence_gives_fewer_matches():
    rng = np.random.default_rng(4)
    reference = {f"{n}": TENSORS["one"] * (1 + 2e-2 * rng.standard_normal((2, 12, 16))) for n in range(20)}
    target = {name: array * (1 + 1e-2 * rng.standard_normal(array.shape)) for name, array in reference.items()}
    sides = prints(reference), prints(target)
    loose, strict = (match(*sides, confidence=level) for level in (0.5, 1 - 1e-12))
    assert len(strict) < len(loose)
    assert all(made.target == made.reference for made in (*loose.values(), *strict.values()))
