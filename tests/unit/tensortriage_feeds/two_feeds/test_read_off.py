"""Changes that are solved for: mixed colours, filters, rates; what is right is what numpy did to the input here."""

import numpy as np
import pytest

from tensortriage_feeds.two_feeds.differences import difference

RNG = np.random.default_rng(11)
TIME = np.arange(12000) / 48000
PITCH = 2 * np.pi * np.cumsum(140 + 25 * np.sin(2 * np.pi * 3 * TIME)) / 48000
FINE = (sum(np.sin(k * PITCH + k) / k for k in range(1, 9)) * (0.3 + np.sin(2 * np.pi * 5 * TIME) ** 2)).clip(-3, 3) / 4
SOUND = np.rint(FINE[None, ::3] * 32768).astype(np.float32) / 32768
Y, X = np.mgrid[:32, :40] / 32
PIXELS = np.stack([0.5 + 0.3 * np.sin(5 * X + c) * np.cos((4 + c) * Y) for c in range(3)])[None]
MEAN, DEVIATION = np.reshape([0.485, 0.456, 0.406], (1, 3, 1, 1)), np.reshape([0.229, 0.224, 0.225], (1, 3, 1, 1))
IMAGE = ((PIXELS - MEAN) / DEVIATION).astype(np.float32)
YCRCB = np.array([[0.299, 0.587, 0.114], [0.5, -0.419, -0.081], [-0.169, -0.331, 0.5]])


def told(mine: np.ndarray, theirs: np.ndarray):
    found = difference({"x": mine}, {"x": np.ascontiguousarray(theirs.astype(mine.dtype))})
    assert found.is_known
    (step,) = found.steps
    return step


@pytest.mark.parametrize("emphasis", [0.97, 0.95])
def test_pre_emphasis_is_told_with_its_number(emphasis):
    made = np.concatenate([SOUND[:, :1], SOUND[:, 1:] - emphasis * SOUND[:, :-1]], axis=1)
    step = told(SOUND, made)
    assert (step.kind, step.parameters["taps"]) == ("filter", pytest.approx([1.0, -emphasis], abs=1e-3))
    assert "pre-emphasis" in step.words


@pytest.mark.parametrize("late", [7, 160, -160])
def test_a_sound_that_begins_elsewhere_is_shifted_by_samples(late):
    long = np.pad(SOUND, ((0, 0), (200, 200)))
    step = told(SOUND, long[:, 200 + late : 200 + late + SOUND.shape[1]])
    assert (step.kind, step.parameters["shift"]) == ("shifted", late)


def test_other_sampling_rates_and_interleaved_channels_are_told_by_their_ratio():
    fast = told(SOUND, FINE[None, : SOUND.shape[1]])
    assert (fast.kind, fast.parameters["ratio"][0] / fast.parameters["ratio"][1]) == (
        "resampling",
        pytest.approx(1 / 3),
    )
    twice = told(SOUND, np.repeat(SOUND, 2, axis=1)[:, : SOUND.shape[1]])
    assert twice.parameters["ratio"][0] / twice.parameters["ratio"][1] == 0.5
    assert "two channels" in twice.words


def test_samples_of_the_other_byte_order_are_told():
    samples = np.rint(SOUND * 32768).astype(np.int16)
    assert told(SOUND, samples.byteswap() / 32768).kind == "other-bytes"


@pytest.mark.parametrize(
    ("standard", "luma"), [("BT.601", (0.299, 0.587, 0.114)), ("BT.709", (0.2126, 0.7152, 0.0722))]
)
def test_gray_by_luma_is_named_behind_a_normalization(standard, luma):
    gray = (PIXELS * np.reshape(luma, (1, 3, 1, 1))).sum(1, keepdims=True)
    step = told(IMAGE, (np.repeat(gray, 3, 1) - MEAN) / DEVIATION)
    assert step.kind == "gray"
    assert standard in step.words


def test_another_space_of_colours_is_told_by_its_matrix():
    mixed = np.einsum("ij,njhw->nihw", YCRCB, PIXELS) + np.reshape([0, 0.5, 0.5], (1, 3, 1, 1))
    step = told(PIXELS.astype(np.float32), mixed)
    assert step.kind == "colours-mixed"
    np.testing.assert_allclose(step.parameters["matrix"], YCRCB, atol=1e-3)


def test_linear_light_is_told_behind_a_normalization():
    assert told(IMAGE, (PIXELS**2.2 - MEAN) / DEVIATION).kind == "gamma"


def test_an_input_that_stays_at_zero_is_lost():
    state = np.tanh(RNG.standard_normal((1, 1, 24))).astype(np.float32)
    assert told(state, np.zeros_like(state)).kind == "constant"


def test_signed_bytes_for_unsigned_ones_wrap_by_128():
    pixels = (PIXELS * 255).astype(np.uint8)
    assert told(pixels, (pixels.astype(int) - 128).astype(np.int8).view(np.uint8)).kind == "dtype"


def test_signed_pixels_are_compared_as_well():
    pixels = (PIXELS * 255 - 128).astype(np.int8)
    assert told(pixels, pixels[:, ::-1]).kind == "channels-reversed"


def test_rows_of_pixels_with_padding_are_told_where_channels_come_first():
    rows = (PIXELS[0].transpose(1, 2, 0)).reshape(32, 120)
    made = np.pad(rows, ((0, 0), (0, 8))).ravel()[: rows.size].reshape(32, 40, 3).transpose(2, 0, 1)[None]
    step = told(PIXELS.astype(np.float32), made)
    assert (step.kind, step.parameters["length"], step.parameters["stride"]) == ("row-stride", 120, 128)


def test_two_numbers_are_exchanged_rather_than_on_a_line():
    sizes = np.array([[480, 640]], np.float32)
    assert told(sizes, sizes[:, ::-1]).kind == "reversed"


HONEST = {
    "another sound": np.sin(np.cumsum(0.3 + 0.1 * np.sin(np.arange(4000) / 300)))[None],
    "a louder band of noise": SOUND + 0.2 * RNG.standard_normal(SOUND.shape),
    "another picture": np.roll(IMAGE, 9, 2) * np.cos(7 * X + 3 * Y),
    "8 bits": ((np.rint(PIXELS * 255) / 255) - MEAN) / DEVIATION,
    "half of the picture is another": np.where(X < 0.6, IMAGE, IMAGE[:, ::-1, ::-1]),
}


@pytest.mark.parametrize("pair", HONEST)
def test_honest_pairs_are_told_nothing(pair):
    mine = SOUND if HONEST[pair].ndim == 2 else IMAGE
    assert not difference({"x": mine}, {"x": HONEST[pair].astype(np.float32)}).is_known


def test_rounding_in_fp32_is_none():
    found = difference({"x": IMAGE}, {"x": (IMAGE * np.float32(1 + 3e-7)).astype(np.float32)})
    assert not found.steps
    assert 0 < found.rounding < 1e-6


def test_colours_of_exchanged_chroma_are_told_though_some_are_cut_off():
    luma = np.array([0.299, 0.587, 0.114])
    y = np.einsum("c,ncij->nij", luma, PIXELS)[:, None]
    red, blue = (PIXELS[:, :1] - y) * 0.713, (PIXELS[:, 2:] - y) * 0.564
    made = np.concatenate([y + 1.403 * blue, y - 0.714 * blue - 0.344 * red, y + 1.773 * red], 1).clip(0.3, 0.75)
    step = told(PIXELS.astype(np.float32), made)
    assert step.kind == "colours-mixed"
    assert step.parameters["matrix"][0] == pytest.approx([0.299 - 1.403 * 0.564 * 0.299, 0.587 - 1.403 * 0.564 * 0.587,
                                                          0.114 + 1.403 * 0.564 * 0.886], abs=0.02)  # fmt: skip


def test_bins_of_another_scale_are_told_by_their_places():
    smooth = np.stack([np.interp(np.arange(0, 23.5, 0.5), np.arange(0, 25, 3), RNG.normal(0, 1, 9)) for _ in range(80)])
    places = np.linspace(2, 44, 24) + 3 * np.sin(np.linspace(0, 3, 24))
    made = np.stack([np.interp(places, np.arange(47), row) for row in smooth])
    step = told(smooth[None, :, ::2].astype(np.float32), made[None])
    assert (step.kind, step.parameters["axis"]) == ("stretch", 2)
    assert np.abs(np.array(step.parameters["places"]) - places / 2).max() < 0.75


def test_noise_is_no_other_filter():
    step = told(IMAGE, IMAGE + RNG.normal(0, 0.05, IMAGE.shape))
    assert step.kind == "noise"
