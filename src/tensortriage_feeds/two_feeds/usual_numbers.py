"""The usual name of a scale and an offset that were fitted."""

import dataclasses

import numpy as np

from tensortriage_feeds.arrays.fits import EXACT, others
from tensortriage_feeds.arrays.input_numbers import FITTED
from tensortriage_feeds.normalizations import Renormalized, renormalizations
from tensortriage_feeds.pictures import PictureAxes

MOST_CHANNELS = 4
"""Channels up to which there are usual means and deviations."""
ALIKE = 2e-3
"""By so much a fitted number may be another than the one that is named: people write three digits."""
NEAR = 0.05
"""The same for numbers that are fitted to pictures which were resized in other ways."""


def named(
    scale: np.ndarray, offset: np.ndarray, made: np.ndarray, axes: PictureAxes | None, alike: float
) -> Renormalized:
    """Return scale and offset with the words of a usual one that is like them, by a share of them.

    Args:
        scale: By channel, or one number.
        offset: The same.
        made: The tensor that they are put on.
        axes: Its axes where they are by channel.
        alike: The share; see `ALIKE`.
    """
    wide = made.astype(np.float64)
    over = others(wide, axes)
    least, most = np.atleast_1d(wide.min(axis=over)), np.atleast_1d(wide.max(axis=over))
    span = np.maximum(np.abs(scale) * np.maximum(np.abs(most), np.abs(least)), 1e-12)
    offset, scale = (
        np.where(np.abs(offset) < EXACT * span, 0.0, offset),
        np.where(np.abs(scale - 1) < EXACT, 1.0, scale),
    )

    def away(usual: Renormalized) -> float:
        by, plus = np.abs(usual.scale - scale) / np.abs(usual.scale), np.abs(usual.offset - offset)
        return float(max(by.max(), (plus / (span + np.abs(offset))).max()))

    known = (
        usual
        for usual in (renormalizations(least, most) if len(least) <= MOST_CHANNELS else ())
        if np.any(usual.scale != 1.0) or np.any(usual.offset)
    )
    nearest = min(known, key=away, default=None)
    if nearest is not None and away(nearest) <= min(alike, NEAR):
        exact = alike <= ALIKE
        return dataclasses.replace(nearest, scale=scale, offset=offset) if exact else nearest
    return Renormalized("scale" if len(scale) == 1 else "normalization", FITTED, scale, offset)
