"""How much of one tensor another leaves unexplained, as it is or by the best scale and offset."""

import numpy as np

from tensortriage_feeds.pictures import PictureAxes

EXACT = 1e-5
"""Largest residual of an exact transform, as a share of the deviation: float32 rounds to 6e-8, and a
mean and a deviation that people write with four digits to 1e-5."""
UNLIKE = 0.3
"""From here on a transform explains too little to be named."""


def unexplained(made: np.ndarray, theirs: np.ndarray, axes: PictureAxes | None) -> float:
    """Return the RMS difference of two tensors, as a share of the deviation of the second from its mean."""
    with np.errstate(invalid="ignore", over="ignore"):  # of bytes that are no numbers
        wide = theirs.astype(np.float64)
        left = made.astype(np.float64) - wide
        spread = wide - wide.mean(axis=others(wide, axes), keepdims=True)
        power = float(np.mean(spread * spread)) or float(np.mean(wide * wide))
        found = float(np.sqrt(np.mean(left * left) / power)) if power else float(np.abs(left).max())
    return found if np.isfinite(found) else np.inf


def fitted(made: np.ndarray, theirs: np.ndarray, axes: PictureAxes | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the scale and offset, of each channel or of all, by which one tensor comes nearest to another.

    By least squares; a channel that is constant on either side keeps its scale.

    Returns:
        Scale and offset by channel, and what they leave; see `unexplained`.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        x, y = made.astype(np.float64), theirs.astype(np.float64)
        over = others(x, axes)
        mean_x, mean_y = x.mean(axis=over, keepdims=True), y.mean(axis=over, keepdims=True)
        spread = ((x - mean_x) ** 2).mean(axis=over, keepdims=True)
        together = ((x - mean_x) * (y - mean_y)).mean(axis=over, keepdims=True)
        vary = (spread > 0) & (np.ptp(y, axis=over, keepdims=True) > 0)
        scale = np.where(vary, together / np.where(vary, spread, 1.0), 1.0)
        offset = mean_y - scale * mean_x
        residual = unexplained(scale * x + offset, y, axes)
    return np.atleast_1d(scale.reshape(-1)), np.atleast_1d(offset.reshape(-1)), residual


def others(array: np.ndarray, axes: PictureAxes | None) -> tuple[int, ...]:
    """Return the axes over which numbers are fitted: all, or all but that of channels."""
    return tuple(axis for axis in range(array.ndim) if axes is None or axis != axes.channel)
