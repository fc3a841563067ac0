"""The usual ways of handing a picture's numbers to a network: what is taken off, and by what it is divided.

All are stated for numbers from 0 to 1, one for each channel in the order red, green, blue.
"""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

Triple = tuple[float, float, float]


@dataclasses.dataclass(frozen=True, slots=True)
class Normalization:
    """Numbers from 0 to 1 become (number - mean) / deviation."""

    words: str
    mean: Triple
    deviation: Triple

    def of_channels(self, channels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation for so many channels: those of a single one are averages, alpha's is left alone."""
        mean, deviation = np.array(self.mean), np.array(self.deviation)
        if channels == 1:
            return mean.mean(keepdims=True), deviation.mean(keepdims=True)
        if channels == len(mean):
            return mean, deviation
        return np.append(mean, 0.0), np.append(deviation, deviation.mean())

    @property
    def in_reverse(self) -> "Normalization":
        """The same numbers for channels in the order blue, green, red."""
        return Normalization(f"{self.words}, in the order of the other channels", self.mean[::-1], self.deviation[::-1])


def _same(words: str, mean: float, deviation: float) -> Normalization:
    return Normalization(words, (mean,) * 3, (deviation,) * 3)


_IMAGENET, _BYTE = (0.485, 0.456, 0.406), 1 / 255
_CAFFE = (123.68 / 255, 116.779 / 255, 103.939 / 255)

PLAIN = _same("numbers from 0 to 1", 0.0, 1.0)
BYTES = _same("numbers from 0 to 255", 0.0, _BYTE)

USUAL = (
    PLAIN,
    BYTES,
    _same("numbers from -1 to 1", 0.5, 0.5),
    Normalization("ImageNet's mean and deviation", _IMAGENET, (0.229, 0.224, 0.225)),
    Normalization(
        "CLIP's mean and deviation", (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    ),
    Normalization("Caffe's means of 123.68, 116.779 and 103.939", _CAFFE, (_BYTE,) * 3),
    Normalization("ImageNet's mean without its deviation", _IMAGENET, (1.0,) * 3),
    Normalization("ImageNet's mean in numbers from 0 to 255", _IMAGENET, (_BYTE,) * 3),
    Normalization("ImageNet's deviation without its mean", (0.0,) * 3, (0.229, 0.224, 0.225)),
    Normalization("Caffe's means and a scale of 0.017", _CAFFE, (_BYTE / 0.017,) * 3),
    _same("(x - 127.5) / 128", 0.5, 128 / 255),
    _same("numbers from -128 to 127", 128 / 255, _BYTE),
    _same("a scale of 1/256", 0.0, 256 / 255),
    _same("numbers from -0.5 to 0.5", 0.5, 1.0),
    _same("a mean of 0 and a deviation of 0.5", 0.0, 0.5),
    Normalization("CIFAR-10's mean and deviation", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    Normalization("CIFAR-10's mean and deviation (0.2023, ...)", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    _same("MNIST's mean and deviation", 0.1307, 0.3081),
    _same("a video's range of 16 to 235", -16 / 219, 255 / 219),
)
"""Of torchvision, OpenAI, Caffe, TensorFlow, insightface, and ITU-R BT.601."""

WITH_CHANNELS = tuple(each for each in USUAL if len(set(zip(each.mean, each.deviation, strict=True))) > 1)
ALL = (*USUAL, *(each.in_reverse for each in WITH_CHANNELS))
_ENOUGH = 1024
"""Numbers of a channel by which it is told whether they are bytes."""
_OUTSIDE = 0.02
"""By so much numbers may leave 0 to 1, where they are put back: an interpolation overshoots."""


@dataclasses.dataclass(frozen=True, slots=True)
class Renormalized:
    """Numbers that become ``scale * number + offset``, by channel.

    Attributes:
        kind: Word of the kind of transform.
        words: The normalization, as a clause that follows the input's name.
    """

    kind: str
    words: str
    scale: np.ndarray
    offset: np.ndarray


def renormalizations(least: np.ndarray, most: np.ndarray) -> Iterator[Renormalized]:
    """Yield possible mistakes in a program's normalization, the likeliest first.

    A normalization that was left out, done twice, or another one than the network's, where the numbers are such that
    it can have made them.

    Args:
        least: The smallest number of each channel, as the network ought to be fed.
        most: The largest.
    """
    channels = len(least)
    ends = ((least, most), (least[::-1], most[::-1]))  # channels may be in the other order as well
    for by in USUAL[1:]:  # to numbers from 0 to 1 again changes nothing
        mean, deviation = by.of_channels(channels)
        yield _made(f"normalized once more, to {by.words}", 1 / deviation, -mean / deviation)
        yield _made(f"not normalized to {by.words}", deviation, mean)
    for right in WITH_CHANNELS:
        mean, deviation = right.of_channels(channels)
        if any(are_pixels(low * deviation + mean, high * deviation + mean) for low, high in ends):
            yield from _other_steps(right, mean, deviation)
    for right, other in itertools.permutations(ALL, 2):
        mean, deviation = right.of_channels(channels)
        if not any(are_pixels(low * deviation + mean, high * deviation + mean) for low, high in ends):
            continue
        other_mean, other_deviation = other.of_channels(channels)
        words = f"normalized to {other.words} instead of {right.words}"
        yield _made(words, deviation / other_deviation, (mean - other_mean) / other_deviation)


def _other_steps(right: Normalization, mean: np.ndarray, deviation: np.ndarray) -> Iterator[Renormalized]:
    """Yield a normalization that did not meet the numbers that it is for, 0 to 1: its division by 255 came last."""
    orders = {
        "normalized to {} as numbers from 0 to 255, and divided by 255 behind that": (mean / 255, deviation),
        "normalized to {} as numbers from 0 to 255, not divided by 255": (mean / 255, deviation / 255),
        "numbers from 0 to 255 less 255 times the mean of {}, over its deviation as it is": (mean, deviation / 255),
    }
    for words, (taken, over) in orders.items():
        yield _made(words.format(right.words), deviation / over, (mean - taken) / over)


def are_pixels(least: np.ndarray, most: np.ndarray) -> bool:
    """Return whether numbers between these lie in 0 to 1."""
    return bool(least.min() >= -_OUTSIDE and most.max() <= 1 + _OUTSIDE)


def pixel_ranges(least: np.ndarray, most: np.ndarray) -> Iterator[Normalization]:
    """Yield the normalizations by which numbers between these may have been made of pixels, the likeliest first."""
    for by in ALL:
        mean, deviation = by.of_channels(len(least))
        if are_pixels(least * deviation + mean, most * deviation + mean):
            yield by


def byte_ranges(pixels: np.ndarray) -> list[Normalization]:
    """Return the same, those first by which numbers are nearest to whole ones of 0 to 255.

    Args:
        pixels: Numbers of each channel, ``[channels, n]``.
    """
    few = pixels[:, :: max(pixels.shape[1] // _ENOUGH, 1)].astype(np.float64)

    def away(by: Normalization) -> float:
        mean, deviation = by.of_channels(len(few))
        bytes_ = (few * deviation[:, None] + mean[:, None]) * 255
        return float(np.abs(bytes_ - np.rint(bytes_)).mean())

    return sorted(pixel_ranges(pixels.min(1), pixels.max(1)), key=away)


def _made(words: str, scale: np.ndarray, offset: np.ndarray) -> Renormalized:
    uniform = np.ptp(scale) == 0.0 and np.ptp(offset) == 0.0
    return Renormalized("scale" if uniform else "normalization", words, scale, offset)


def numbers(array: np.ndarray) -> list[float]:
    """Return numbers as people write them: one where all are equal, with five digits."""
    rounded = [float(f"{number:.5g}") + 0.0 for number in array]
    return rounded[:1] if len(set(rounded)) == 1 else rounded
