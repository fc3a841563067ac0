"""Polygraphy's numbers come from tests/golden/polygraphy/random.json, made by the real Polygraphy 0.53.6 (make.py)."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Origin
from tensortriage.inputs.synthetic.polygraphy import polygraphy_feeds
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

GOLDEN = json.loads((Path(__file__).parents[3] / "golden/polygraphy/random.json").read_text())


def spec(name, dtype, shape):
    return ValueSpec(name, DType.parse(dtype), tuple(None if d == -1 else d for d in shape))


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_polygraphys_numbers_bit_for_bit(case):
    feeds = list(
        polygraphy_feeds(
            [spec(*item) for item in case["inputs"]],
            seed=case.get("seed", 1),
            iterations=case.get("iterations", 1),
            val_range={name: tuple(map(float, pair)) for name, pair in case.get("val_range", {}).items()},
            shapes={name: tuple(shape) for name, shape in case.get("shapes", {}).items()},
        )
    )
    assert len(feeds) == len(case["feeds"])
    for feed, expected in zip(feeds, case["feeds"], strict=True):
        assert feed.origin is Origin.RANDOM
        assert list(feed.tensors) == list(expected)
        for name, golden in expected.items():
            array = feed.tensors[name]
            assert (str(array.dtype), list(array.shape)) == (golden["dtype"], golden["shape"])
            assert [repr(v) for v in array.reshape(-1)[:3].tolist()] == golden["first"]
            assert hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() == golden["sha256"]


def test_what_polygraphy_cannot_draw_is_drawn_and_rounded():
    feed = next(polygraphy_feeds([spec("b", "bfloat16", [50]), spec("i", "int4", [50])], val_range={"i": (-8, 7)}))
    assert feed.tensors["b"].dtype == DType.BFLOAT16.numpy
    # The first input draws what a float32 one would: the same MT19937 stream, rounded to 8 bits of mantissa.
    plain = next(polygraphy_feeds([spec("b", "float64", [50])])).tensors["b"]
    np.testing.assert_allclose(feed.tensors["b"].astype(float), plain, rtol=2**-8)
    assert set(feed.tensors["i"].astype(int)) <= set(range(-8, 8))
    assert feed.tensors["i"].astype(int).min() < -4


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"val_range": {"nope": (0, 1)}}, "input-unknown"),
        ({"val_range": {"i": (0, 300)}}, "range-malformed"),
        ({"val_range": {"i": (0, math.inf)}}, "range-malformed"),
        ({"shapes": {"i": (2, 3)}}, "shape-contradicts-model"),
        ({"seed": -1}, "seed-out-of-range"),
    ],
)
def test_wrong_options_are_refused(options, slug):
    with pytest.raises(UsageError) as caught:
        list(polygraphy_feeds([spec("i", "uint8", [4])], **options))
    assert caught.value.slug == slug


@pytest.mark.parametrize("dtype", ["string", "complex64"])
def test_types_without_a_range_are_refused(dtype):
    with pytest.raises(UsageError) as caught:
        list(polygraphy_feeds([spec("s", dtype, [4])]))
    assert caught.value.slug == "random-unsupported"
