"""Which part of a picture another one shows; what is right is the part that was sampled here, of a known function."""

import numpy as np
import pytest

from tensortriage_feeds.pictures import PictureAxes, picture_axes
from tensortriage_feeds.two_feeds.differences import difference
from tensortriage_feeds.two_feeds.registration import shown

AXES = PictureAxes(1, 2, 3)


def scene(rows: tuple[float, float], columns: tuple[float, float], size: tuple[int, int], seed: int = 0) -> np.ndarray:
    """Return a smooth picture of many waves, sampled over a part of it, ``[1, 3, rows, columns]``."""
    rng = np.random.default_rng(seed)
    y, x = (a + (np.arange(n) + 0.5) * (b - a) / n for (a, b), n in zip((rows, columns), size, strict=True))
    made = np.zeros((3, *size))
    for _ in range(30):
        high, wide, phase = [*rng.normal(0, 9, 2), rng.uniform(0, 6)]
        made += (
            rng.normal(0, 1, (3, 1, 1))
            / (1 + np.hypot(high, wide))
            * np.sin(high * y[:, None] + wide * x[None] + phase)
        )
    return made[None].astype(np.float32)


WHOLE = scene((0, 1), (0, 1), (64, 64))


@pytest.mark.parametrize(
    ("rows", "columns", "kind"),
    [
        ((0.06, 0.94), (0.21, 0.79), "crop"),  # the middle of a wide picture for the whole
        ((0.0, 0.7), (0.0, 0.9), "crop"),  # not of its middle
        ((-0.07, 1.07), (-0.4, 1.4), "stretch"),  # the whole of a wide picture for its middle
        ((0.0, 1.0), (-0.2, 1.2), "stretch"),  # another shape
    ],
)
def test_the_part_that_a_picture_shows_is_found_to_a_pixel(rows, columns, kind):
    made = scene(rows, columns, (64, 64))
    found = shown(WHOLE, made, AXES)
    assert found is not None
    np.testing.assert_allclose((*found.rows, *found.columns), 64 * np.array([*rows, *columns]), atol=1.0)
    (step,) = difference({"image": WHOLE}, {"image": made}).steps
    assert step.kind == kind
    np.testing.assert_allclose(step.parameters["box"], 64 * np.array([*rows, *columns]), atol=1.0)


@pytest.mark.parametrize("seed", range(1, 3))
def test_another_picture_is_no_part(seed):
    other = scene((0, 1), (0, 1), (64, 64), seed)
    assert picture_axes(other.shape) == AXES
    assert not difference({"image": WHOLE}, {"image": other}).is_known


def letterboxed(top: int, pad: float) -> np.ndarray:
    box = np.full((1, 3, 96, 96), pad, np.float32)
    box[:, :, top : top + 64] = scene((0, 1), (0, 1), (64, 96))
    return box


@pytest.mark.parametrize(("place", "pad"), [(0, -2.0), (16, 0.0), (32, 0.5)])
def test_bands_of_another_place_or_colour_are_told_with_their_colour(place, pad):
    (step,) = difference({"image": letterboxed(16, 0.25)}, {"image": letterboxed(place, pad)}).steps
    assert step.kind == "bands"
    assert step.parameters["box"] == [place, place + 64, 0, 96]
    assert step.parameters["pad"] == [pad]


def test_numbers_that_come_with_a_letterbox_are_the_usual_ones():
    made = letterboxed(16, 0.45) * 255
    steps = difference({"image": (WHOLE * 0.1 + 0.5)}, {"image": made * np.float32(0.1) + np.float32(127.5)}).steps
    assert [step.kind for step in steps] == ["letterbox", "scale"]
    assert steps[1].parameters["scale"] == pytest.approx([255.0] * len(steps[1].parameters["scale"]), rel=1e-3)
