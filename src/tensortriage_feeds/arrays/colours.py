"""Pictures in another space of colours, or with fewer bits, in front of a normalization."""

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from tensortriage_feeds.normalizations import Normalization, pixel_ranges
from tensortriage_feeds.pictures import PictureAxes
from tensortriage_feeds.transforms import Transform, of_input

Colours = Callable[[np.ndarray], np.ndarray]
_BITS = {"RGB565": (5, 6, 5), "RGB555": (5, 5, 5), "RGB444": (4, 4, 4)}
_NEAR_BYTE = 0.01
"""Distance from whole numbers of 255ths, within which pixels are bytes that were normalized in fp32."""
_DECIMALS, _ALL, _BYTES = 6, 16, -1
"""Of pixels, so that equal ones are equal again behind a normalization in fp32, as hues jump there; of a program
that is itself behind it; and of one that has bytes."""
_MOST_RANGES = 3
"""Normalizations that a picture may have, the likeliest of which are tried."""


def _extremes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the hue from 0 to 1, the largest and the least of red, green and blue, of ``[3, ...]``."""
    red, green, blue = x
    most, least = x.max(0), x.min(0)
    span = np.where(most > least, most - least, 1.0)
    hue = np.where(most == red, (green - blue) / span % 6.0,
                   np.where(most == green, (blue - red) / span + 2.0, (red - green) / span + 4.0)) / 6.0  # fmt: skip
    return np.where(most > least, hue, 0.0), most, least


def _hsv(x: np.ndarray) -> np.ndarray:
    hue, most, least = _extremes(x)
    return np.stack([hue, (most - least) / np.where(most > 0.0, most, 1.0), most])


def _hls(x: np.ndarray) -> np.ndarray:
    hue, most, least = _extremes(x)
    light = (most + least) / 2.0
    room = np.where(light < 0.5, most + least, 2.0 - most - least)
    return np.stack([hue, light, (most - least) / np.where(room > 0.0, room, 1.0)])


def _opencv(of: Colours) -> Colours:
    """Return hues as OpenCV has them in bytes: half of the degrees."""
    return lambda x: of(x) * np.reshape([180 / 255, 1.0, 1.0], (3, *[1] * (x.ndim - 1)))


def _lab(x: np.ndarray) -> np.ndarray:
    """Return CIE L*a*b* of sRGB under D65, as bytes have it: L times 2.55, 128 added to a and b, over 255."""
    linear = np.where(x > 0.04045, ((np.maximum(x, 0.0) + 0.055) / 1.055) ** 2.4, x / 12.92)
    mixing = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    cie = np.tensordot(mixing / np.array([[0.950456], [1.0], [1.088754]]), linear, 1)
    bent = np.where(cie > 0.008856, np.cbrt(cie), 7.787 * cie + 16 / 116)
    lab = np.stack([116 * bent[1] - 16, 500 * (bent[0] - bent[1]), 200 * (bent[1] - bent[2])])
    move = np.reshape([0.0, 128.0, 128.0], (3, *[1] * (x.ndim - 1)))
    return np.asarray((lab * np.reshape([2.55, 1.0, 1.0], move.shape) + move) / 255)


def _luma(red: float, blue: float) -> Colours:
    """Return YCrCb with 0.5 added to both differences: JPEG's and OpenCV's, or YUV's."""

    def of(x: np.ndarray) -> np.ndarray:
        luma = 0.299 * x[0] + 0.587 * x[1] + 0.114 * x[2]
        return np.stack([luma, (x[0] - luma) * red + 0.5, (x[2] - luma) * blue + 0.5])

    return of


def _swapped(of: Colours) -> Colours:
    return lambda x: of(x)[[0, 2, 1]]


def _decoded(luma: tuple[float, float], as_luma: tuple[float, float], *, swapped: bool = False) -> Colours:
    """Return RGB that was coded as luma and chroma by two weights (red, blue) and decoded by others, or exchanged."""

    def of(x: np.ndarray) -> np.ndarray:
        (red, blue), (as_red, as_blue) = luma, as_luma
        y = red * x[0] + (1 - red - blue) * x[1] + blue * x[2]
        v, u = (x[0] - y) / (2 - 2 * red), (x[2] - y) / (2 - 2 * blue)
        u, v = (v, u) if swapped else (u, v)
        r, b = y + (2 - 2 * as_red) * v, y + (2 - 2 * as_blue) * u
        green = (y - as_red * r - as_blue * b) / (1 - as_red - as_blue)
        return np.asarray(np.stack([r, green, b]).clip(0.0, 1.0))

    return of


_BT601, _BT709 = (0.299, 0.114), (0.2126, 0.0722)


SPACES: dict[str, Colours] = {
    "HSV": _hsv,
    "HSV, hues up to 180": _opencv(_hsv),
    "YCrCb": _luma(0.713, 0.564),
    "YCbCr": _swapped(_luma(0.713, 0.564)),
    "YUV": _swapped(_luma(0.877, 0.492)),
    "HLS": _hls,
    "HLS, hues up to 180": _opencv(_hls),
    "Lab": _lab,
    "RGB with U and V exchanged (NV21 for NV12)": _decoded(_BT601, _BT601, swapped=True),
    "RGB of BT.601 decoded by BT.709": _decoded(_BT601, _BT709),
    "RGB of BT.709 decoded by BT.601": _decoded(_BT709, _BT601),
}
"""Spaces of colours of ``[3, ...]`` from 0 to 1, as OpenCV, Pillow and scikit-image compute them, from 0 to 1 again."""


def colours(name: str, array: np.ndarray, axes: PictureAxes) -> Iterator[Transform]:
    """Yield pictures in other spaces of colours, or with fewer bits, before the normalization that they have.

    Args:
        name: The input.
        array: The right pictures, of floats.
        axes: Their axes, with three channels.
    """
    if array.shape[axes.channel] != 3 or not np.isfinite(array).all():
        return
    over = tuple(axis for axis in range(array.ndim) if axis != axes.channel)
    ranges = list(itertools.islice(pixel_ranges(array.min(axis=over), array.max(axis=over)), _MOST_RANGES))
    for by, bits in itertools.product(ranges, _BITS.items()):
        word, each = bits
        yield of_input(name, "dtype", f"has {', '.join(map(str, each))} bits of its channels ({word})",
                       functools.partial(_within, of=functools.partial(_cut, bits=each), by=by, axes=axes, order=1),
                       "read the picture with 8 bits a channel", through=word)  # fmt: skip
    first = ranges[0].of_channels(3) if ranges else ()
    pixels = np.moveaxis(array, axes.channel, -1) * first[1] + first[0] if first else array
    in_bytes = bool(np.abs(pixels * 255 - np.rint(pixels * 255)).max() < _NEAR_BYTE)
    for by, order, (word, of), decimals in itertools.product(
        ranges, (1, -1), SPACES.items(), (_DECIMALS, _ALL, _BYTES)
    ):
        if (decimals == _ALL and not word.startswith("H")) or (decimals == _BYTES and not in_bytes):
            continue
        from_bgr = ", taking it for BGR" if order < 0 else ""
        yield of_input(name, "colours-mixed", f"has other colours: {word} in place of RGB{from_bgr}",
                       functools.partial(_within, of=of, by=by, axes=axes, order=order, decimals=decimals),
                       "convert the picture to RGB before {x} is filled", space=word)  # fmt: skip


def _within(
    array: np.ndarray, of: Colours, by: Normalization, axes: PictureAxes, order: int, decimals: int = _DECIMALS
) -> np.ndarray:
    """Return pictures whose colours were changed before they were normalized."""
    mean, deviation = (axes.per_channel(each, array.ndim) for each in by.of_channels(3))
    plain = np.moveaxis(array.astype(np.float64) * deviation + mean, axes.channel, 0)[::order]
    made = of(np.round(plain, _DECIMALS if decimals == _BYTES else decimals))
    made = np.rint(made * 255).clip(0, 255) / 255 if decimals == _BYTES else made
    return np.asarray((np.moveaxis(made, 0, axes.channel) - mean) / deviation)


def _cut(x: np.ndarray, bits: tuple[int, ...]) -> np.ndarray:
    """Return pixels cut to so many bits, and put back to 0 to 1."""
    steps = np.reshape([2**each - 1 for each in bits], (3, *[1] * (x.ndim - 1)))
    return np.asarray(np.floor(np.rint(x * 255) * (steps + 1) / 256) / steps)
