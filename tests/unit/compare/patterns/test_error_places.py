"""Wrong elements in a known place: the place is found where chance would not make it, and nothing else is."""

import math

import numpy as np
import pytest

from tensortriage.compare.patterns.error_places import nonfinite, ordinal, places, spread_words
from tensortriage.compare.patterns.error_view import lay_out

REFERENCE = np.random.default_rng(1).standard_normal((16, 12, 40)).astype(np.float32)


def wrong_at(index, shape=REFERENCE.shape):
    wrong = np.zeros(shape, bool)
    wrong[index] = True
    return wrong


def found(wrong):
    specimen = lay_out(REFERENCE, np.where(wrong, REFERENCE + 5.0, REFERENCE), floor=0.0)
    return places(specimen, wrong, what="wrong elements", share=1.0)


@pytest.mark.parametrize(
    ("index", "slug", "facts"),
    [
        (np.s_[3], "axis", {"axis": 0, "indices": [3]}),
        (np.s_[:, [2, 7]], "axis", {"axis": 1, "indices": [2, 7]}),
        (np.s_[:, :, 32:], "tail", {"axis": 2, "indices_hit": 8}),
        (np.s_[:, :, 1::4], "period", {"axis": 2, "period": 4, "residues": [1]}),
        (np.s_[:, :, [0, 39]], "axis", {"axis": 2, "indices": [0, 39]}),
    ],
    ids=["index", "indices", "tail", "period", "ends"],
)
def test_a_place_is_named_with_its_axis(index, slug, facts):
    first = found(wrong_at(index))[0]
    assert first.slug == slug
    assert {key: first.evidence[key] for key in facts} == facts


def test_a_tail_that_fills_no_tile_says_so():
    wide = np.random.default_rng(2).standard_normal((64, 70)).astype(np.float32)
    wrong = wrong_at(np.s_[:, 64:], wide.shape)
    specimen = lay_out(wide, np.where(wrong, 0.0, wide), floor=0.0)
    (tail,) = places(specimen, wrong, what="wrong elements", share=1.0)
    assert (tail.slug, "tile of 64" in tail.sentence) == ("tail", True)


@pytest.mark.parametrize(
    ("index", "size", "said"),
    [
        (np.s_[:, 2049::2], 3000, "fp16 holds whole numbers up to 2048 only"),
        (np.s_[:, 2049:], 2500, "fp16 holds whole numbers up to 2048 only"),
        (np.s_[:, 257::2], 512, "bf16 holds whole numbers up to 256 only"),
        (np.s_[:, 2048:], 2500, ""),  # a kernel's blocks
        (np.s_[:, 2100:], 2500, ""),
        (np.s_[:, 257], 512, ""),
    ],
    ids=["fp16-odd", "fp16-tail", "bf16", "blocks", "later", "one"],
)
def test_indices_from_the_first_number_on_that_a_format_does_not_hold(index, size, said):
    wide = np.random.default_rng(2).standard_normal((8, size)).astype(np.float32)
    wrong = wrong_at(index, wide.shape)
    specimen = lay_out(wide, np.where(wrong, 0.0, wide), floor=0.0)
    (finding,) = places(specimen, wrong, what="wrong elements", share=1.0)
    assert said in finding.sentence
    assert ("whole numbers" in finding.sentence) == ("whole numbers" in said)


def test_a_frame_around_two_axes_is_a_border():
    image = np.random.default_rng(3).standard_normal((2, 12, 12)).astype(np.float32)
    wrong = np.ones(image.shape, bool)
    wrong[:, 1:-1, 1:-1] = False
    specimen = lay_out(image, np.where(wrong, image + 5.0, image), floor=0.0)
    (border,) = places(specimen, wrong, what="wrong elements", share=1.0)
    assert (border.slug, border.evidence["axes"], border.evidence["width"]) == ("border", [1, 2], 1)


def test_what_is_scattered_has_no_place():
    wrong = np.random.default_rng(4).random(REFERENCE.shape) < 0.1
    assert found(wrong) == []
    assert found(wrong_at(np.s_[0, 0, 0])) == []  # one element may lie anywhere


def test_a_place_that_chance_makes_is_none():
    """Twelve elements in one half of an axis: ``10 ** (2 log10(16) + 12 log10(1/2))``, once in sixteen tensors."""
    rng = np.random.default_rng(6)
    wrong = np.zeros(REFERENCE.shape, bool)
    wrong[rng.permutation(8).repeat(2)[:12], rng.integers(0, 12, 12), rng.integers(0, 40, 12)] = True
    assert found(wrong) == []


def test_few_elements_are_outliers_and_many_are_scattered():
    one = wrong_at(np.s_[3, 4, 5])
    specimen = lay_out(REFERENCE, np.where(one, 100.0, REFERENCE).astype(np.float32), floor=0.0)
    told = spread_words(specimen, one, 1.0)
    assert (told.slug, told.evidence["worst"]) == ("outliers", [[3, 4, 5]])
    many = np.random.default_rng(5).random(REFERENCE.shape) < 0.2
    specimen = lay_out(REFERENCE, np.where(many, REFERENCE + 5.0, REFERENCE), floor=0.0)
    assert spread_words(specimen, many, 1.0).slug == "scattered"
    few = lay_out(REFERENCE[0, 0, :20], REFERENCE[0, 0, :20] + 1.0, floor=0.0)
    assert spread_words(few, np.ones(20, bool), 1.0) is None


def test_what_became_infinite_is_told_with_what_the_reference_has_there():
    large = np.abs(REFERENCE) > 2.0
    (first, *_) = nonfinite(lay_out(REFERENCE * 1e3, np.where(large, math.inf, REFERENCE * 1e3), floor=0.0))
    counts = {word: first.evidence[word] for word in ("NaN", "Inf", "-Inf")}
    assert (first.slug, counts) == ("nonfinite", {"NaN": 0, "Inf": int(large.sum()), "-Inf": 0})
    assert "overflow" in first.sentence
    (logs, *_) = nonfinite(
        lay_out(REFERENCE, np.where(large, -math.inf, REFERENCE), floor=0.0)
    )  # of numbers that became 0
    assert "magnitude exceeds" in logs.sentence
    assert "overflow" not in logs.sentence
    negative = REFERENCE < 0.0
    (root, *_) = nonfinite(lay_out(REFERENCE, np.where(negative, math.nan, REFERENCE), floor=0.0))
    assert "below" in root.sentence
    assert nonfinite(lay_out(REFERENCE, REFERENCE, floor=0.0)) == []


@pytest.mark.parametrize(
    ("count", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (12, "12th"), (22, "22nd")]
)
def test_ordinals(count, word):
    assert ordinal(count) == word
