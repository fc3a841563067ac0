"""Which transform turns one tensor into another; what is right is what numpy did to it here."""

import numpy as np
import pytest

from tensortriage_feeds.transforms import composed, cure_of, sentence
from tensortriage_feeds.two_feeds.differences import EXACT, difference

RNG = np.random.default_rng(5)
Y, X = np.mgrid[:24, :32] / 24
PLANES = [0.5 + 0.3 * np.sin(5 * X + c) * np.cos(4 * Y - c) + 0.2 * (RNG.random((24, 32)) - 0.5) for c in range(3)]
PICTURE = np.clip(PLANES, 0, 1)[None]
MEAN, DEVIATION = np.reshape([0.485, 0.456, 0.406], (1, 3, 1, 1)), np.reshape([0.229, 0.224, 0.225], (1, 3, 1, 1))
IMAGE = ((PICTURE - MEAN) / DEVIATION).astype(np.float32)
RESIZED = np.repeat(np.repeat(IMAGE[:, :, ::2, ::2], 2, 2), 2, 3)

MADE = {
    "channels-reversed": IMAGE[:, ::-1],
    "channels-permuted": IMAGE[:, [1, 2, 0]],
    "scale": IMAGE / 255,
    "normalization": PICTURE,
    "layout": IMAGE.transpose(0, 2, 3, 1).reshape(IMAGE.shape),
    "transposed": IMAGE.swapaxes(2, 3).reshape(IMAGE.shape),
    "flipped-horizontally": IMAGE[..., ::-1],
    "flipped-vertically": IMAGE[:, :, ::-1],
    "rotated": IMAGE[:, :, ::-1, ::-1],
    "interpolation": RESIZED,
    "shifted": np.roll(IMAGE, 1, axis=3),
    "crop": IMAGE[:, :, 5:20, 4:25],
    "dtype": np.trunc(IMAGE),
}


@pytest.mark.parametrize("kind", MADE)
def test_one_change_is_told(kind):
    made = np.ascontiguousarray(MADE[kind].astype(np.float32))
    found = difference({"image": IMAGE}, {"image": made})
    assert [step.kind for step in found.steps] == [kind]
    assert found.residual <= EXACT
    assert cure_of(found.steps)


def test_equal_feeds_differ_in_nothing():
    assert difference({"image": IMAGE}, {"image": IMAGE.copy()}).inputs == ()


def test_channels_and_numbers_are_told_together_and_undo_each_other():
    made = np.ascontiguousarray((PICTURE * 255)[:, ::-1].astype(np.float32))
    found = difference({"image": IMAGE}, {"image": made})
    assert [step.kind for step in found.steps] == ["channels-reversed", "normalization"]
    np.testing.assert_allclose(composed(found.steps, {"image": IMAGE})["image"], made, atol=0.01)
    scope = {"image": made, "np": np}
    for line in cure_of(found.steps).split("; "):
        exec(line, scope)
    np.testing.assert_allclose(scope["image"], IMAGE, atol=1e-3)


def test_a_mean_and_a_deviation_of_no_name_are_fitted_by_channel():
    mean, deviation = np.float32([0.3, -0.1, 0.2]).reshape(1, 3, 1, 1), np.float32([0.9, 1.3, 1.1]).reshape(1, 3, 1, 1)
    (step,) = difference({"image": IMAGE}, {"image": (IMAGE - mean) / deviation}).steps
    np.testing.assert_allclose(step.parameters["mean"], mean.ravel(), atol=1e-4)
    np.testing.assert_allclose(step.parameters["deviation"], deviation.ravel(), rtol=1e-4)


def test_a_letterbox_is_known_by_its_bands_and_an_original_by_its_size():
    original = np.rint(255 * PICTURE[0].repeat(2, 1).repeat(3, 2).transpose(1, 2, 0)).astype(np.uint8)
    inner = original[::2, ::3].transpose(2, 0, 1)[None] / np.float32(255)
    boxed = np.full((1, 3, 32, 32), 114 / 255, np.float32)
    boxed[:, :, 4:28] = inner
    found = difference({"image": original}, {"image": boxed})
    assert [step.kind for step in found.steps] == ["letterbox", "scale"]
    assert found.steps[0].parameters["box"] == [4, 28, 0, 32]
    assert found.residual < 0.02


def test_a_reference_s_own_letterbox_is_known():
    """The picture inside, stretched, or between bands of another colour."""
    boxed = np.full((1, 3, 32, 32), 114 / 255, np.float32)
    boxed[:, :, 4:28] = PICTURE
    stretched, black = PICTURE.repeat(2, 2).astype(np.float32), np.where(boxed == boxed[:, :, :1], 0, boxed)
    (step,) = difference({"image": boxed}, {"image": stretched}).steps
    assert (step.kind, step.parameters["box"]) == ("stretch", [0, 48, 0, 32])
    (step,) = difference({"image": boxed}, {"image": black}).steps
    assert (step.kind, step.parameters["box"]) == ("bands", [4, 28, 0, 32])


def test_numbers_that_have_nothing_in_common_are_told_as_such():
    found = difference({"image": IMAGE}, {"image": RNG.standard_normal(IMAGE.shape).astype(np.float32)})
    assert found.inputs == ("image",)
    assert not found.is_known


IDS = np.array([[101, 7, 8, 9, 102, 0, 0], [101, 5, 6, 102, 0, 0, 0]])
MASK = (IDS > 0).astype(np.int64)
TOKENS = {
    "lacks its first token": {"ids": np.array([[7, 8, 9, 102, 0, 0, 0], [5, 6, 102, 0, 0, 0, 0]]), "mask": MASK},
    "lacks its last token": {"ids": np.where(IDS == 102, 0, IDS), "mask": MASK},
    "is inverted": {"ids": IDS, "mask": 1 - MASK},
    "is 1 everywhere": {"ids": IDS, "mask": np.ones_like(MASK)},
    "are padded on the left": {
        "ids": np.array([[0, 0, 101, 7, 8, 9, 102], [0, 0, 0, 101, 5, 6, 102]]), "mask": MASK[:, ::-1],
    },
    "is moved right by one": {"ids": np.concatenate([IDS[:, :1], IDS[:, :-1]], axis=1), "mask": MASK},
}  # fmt: skip


@pytest.mark.parametrize("words", TOKENS)
def test_tokens_and_masks_are_told(words):
    found = difference({"ids": IDS, "mask": MASK}, {n: np.ascontiguousarray(a) for n, a in TOKENS[words].items()})
    assert words in sentence(found.steps)
    assert found.residual == 0.0


@pytest.mark.parametrize(
    ("through", "words"),
    [
        (
            lambda x: (x * 255).astype(np.uint8) / np.float32(255),
            "was cut to 255ths, as bytes hold numbers from 0 to 1",
        ),
        (lambda x: np.rint(x * 255).astype(np.float32) / 255, "was rounded to 255ths"),
        (lambda x: x.astype(np.float16).astype(np.float32), "was rounded to fp16"),
    ],
)
def test_pictures_that_passed_through_another_type_in_another_order_are_told(through, words):
    picture = np.random.default_rng(4).random((2, 3, 16, 16), np.float32)
    found = difference({"image": picture}, {"image": np.ascontiguousarray(through(picture)[:, ::-1])})
    assert sentence(found.steps).endswith(
        f"has its channels reversed (BGR for RGB, or the other way round) and {words}"
    )
    assert found.residual == 0.0


def test_inputs_of_one_shape_that_are_exchanged_are_told():
    left, right = RNG.random((1, 4, 6)), RNG.random((1, 4, 6))
    found = difference({"left": left, "right": right}, {"left": right, "right": left})
    assert sentence(found.steps) == "'left' and 'right' are exchanged"


def test_rows_of_a_batch_in_the_places_of_others_or_never_filled():
    mine = {"x": np.random.default_rng(3).random((4, 3, 5, 5), np.float32)}

    def told(rows):
        found = difference(mine, {"x": np.stack([mine["x"][row] if row >= 0 else 0 * mine["x"][0] for row in rows])})
        assert found.residual == 0.0
        return sentence(found.steps)

    assert told([1, 2, 3, 3]) == "'x' holds rows [1, 2, 3, 3] of its batch in place of 0 to 3"
    assert told([0, -1, -1, -1]) == "'x' has rows [1, 2, 3] of its batch empty (0)"
    assert (
        told([0, -1, 1, -1])
        == "'x' holds rows [1] in places [2] of its batch and has rows [1, 3] of its batch empty (0)"
    )
    assert told([3, 2, 1, 0]) == "'x' has the rows of its batch in reverse"


def test_an_input_that_comes_to_one_number_is_no_scale_of_0():
    mine = {"x": np.random.default_rng(3).uniform(0.1, 0.9, (1, 3, 5, 5)).astype(np.float32)}
    cut = difference(mine, {"x": mine["x"].astype(np.uint8).astype(np.float32)})
    assert sentence(cut.steps) == "'x' was cut to whole numbers of 8 bits, which wrap, which leaves 0 everywhere"
    lost = difference(mine, {"x": np.full_like(mine["x"], 0.5)})
    assert (sentence(lost.steps), lost.residual) == ("'x' is 0.5 everywhere, whatever it is given", 0.0)


@pytest.mark.parametrize("mask", [{}, {"mask": np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])}])
def test_positions_that_count_padding_are_told(mask):
    right = {"place": np.array([[0, 0, 0, 1, 2], [0, 0, 1, 2, 3]]), **mask}
    (step,) = difference(right, {**right, "place": np.tile(np.arange(5), (2, 1))}).steps
    assert (step.kind, step.inputs) == ("positions", ("place",))
    assert "from its padding on" in step.words
    if mask:
        made = {}
        exec(step.cure.replace("place = ", "place = "), {"np": np, **mask}, made)
        np.testing.assert_array_equal(made["place"], right["place"])


def test_positions_of_padded_text_are_told_where_the_others_are_right():
    mask = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])
    mine = {"place": np.tile(np.arange(5), (2, 1)), "mask": mask}
    theirs = {**mine, "place": np.maximum(mask.cumsum(-1) - 1, 0)}
    (step,) = difference(mine, theirs).steps
    assert step.words == "counts the tokens that 'mask' shows, from 0 on"


def smoothed(picture):
    return sum(np.roll(picture, (y, x), (2, 3)) for y in (-1, 0, 1) for x in (-1, 0, 1)) / 9


def scene(seed):
    """Return a picture with detail at every scale, [1, 3, 64, 64]: 1 / f, as photographs have it."""
    rng = np.random.default_rng(seed)
    rate = np.hypot(np.fft.fftfreq(64)[:, None], np.fft.fftfreq(64)[None]) + 1 / 64
    return np.real(np.fft.ifft2(np.fft.fft2(rng.standard_normal((1, 3, 64, 64))) / rate)).astype(np.float32)


def test_pictures_that_differ_in_fine_detail_alone_are_resized_otherwise():
    for mine, theirs in ((scene(1), smoothed(scene(1))), (smoothed(scene(2)), scene(2))):
        found = difference({"image": mine}, {"image": theirs})
        assert [step.kind for step in found.steps] == ["resampling"]
        assert "resized by another filter" in sentence(found.steps)


@pytest.mark.lengthy
def test_another_picture_and_one_half_covered_are_not_in_other_detail():
    for theirs in (scene(4), np.where(np.arange(64) < 40, scene(3), 0).astype(np.float32)):
        assert "resampling" not in [step.kind for step in difference({"image": scene(3)}, {"image": theirs}).steps]
