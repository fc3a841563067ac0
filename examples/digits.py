"""The data behind the examples: scikit-learn's scan of 1797 handwritten digits, 8x8 pixels of 0 to 16."""

import dataclasses

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

FULL_INK = 16
"""Largest pixel value in scikit-learn's data."""


@dataclasses.dataclass(frozen=True)
class Digits:
    """Pixels as uint8 ``[count, 8, 8]`` in 0 to 16, labels as int64 ``[count]``; no picture is in both parts."""

    train_pixels: np.ndarray
    train_labels: np.ndarray
    test_pixels: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """Return the fixed, stratified split: 1347 pictures to train on, 450 held back."""
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels.reshape(-1, 8, 8).astype(np.uint8)
    train_pixels, test_pixels, train_labels, test_labels = train_test_split(
        pixels, labels.astype(np.int64), test_size=450, random_state=0, stratify=labels
    )
    return Digits(train_pixels, train_labels, test_pixels, test_labels)


def unit_range(pixels: np.ndarray) -> np.ndarray:
    """Return float32 ``[count, 1, 8, 8]`` in 0 to 1: what a preprocessing step usually hands over."""
    return (pixels[:, np.newaxis] / FULL_INK).astype(np.float32)


def byte_range(pixels: np.ndarray) -> np.ndarray:
    """Return float32 ``[count, 1, 8, 8]`` in 0 to 255: the raw values of an 8-bit picture."""
    return (pixels[:, np.newaxis] * (255 / FULL_INK)).astype(np.float32)


def inked_patches(pixels: np.ndarray) -> np.ndarray:
    """Return float32 ``[count, 16]``: 1 for a 2x2 patch that holds ink, 0 for one that is padding."""
    patches = pixels.reshape(-1, 4, 2, 4, 2)
    return (patches.max(axis=(2, 4)) > 0).reshape(-1, 16).astype(np.float32)
