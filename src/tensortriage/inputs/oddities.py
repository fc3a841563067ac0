"""Oddities of a feed, in a sentence each, before anything is run on it: most wrong results begin there.

Nothing is refused here: zeros may be intended, and masks are written with -Inf.
"""

import dataclasses
import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import count

PIXEL_RANK, FEWEST_PIXELS, BRIGHTEST = 3, 64, 255
CHANNELS = (1, 3, 4)
"""Channels that pictures have: grey, RGB, with transparency."""


class OddKind(enum.Enum):
    """Kind of oddity."""

    NON_FINITE = "non-finite"
    ZERO = "zero"
    CONSTANT = "constant"
    PIXELS = "pixels"
    CHANNELS_LAST = "channels-last"


@frozen_dataclass
class Oddity:
    """Something odd about an input of a feed, with a sentence."""

    kind: OddKind
    value: str
    sentence: str


def oddities(feeds: Iterable[Feed], specs: Sequence[ValueSpec]) -> Iterator[Oddity]:
    """Yield the oddities of feeds from the user, each kind once per input.

    Args:
        feeds: As they are run.
        specs: The model's inputs.
    """
    told: set[tuple[OddKind, str]] = set()
    for feed in feeds:
        if feed.origin is not Origin.REAL:
            continue
        for found in _of_feed(feed.tensors, {spec.name: spec for spec in specs}):
            if (found.kind, found.value) not in told:
                told.add((found.kind, found.value))
                yield dataclasses.replace(found, sentence=f"{feed.name}: {found.sentence}")


def constant_inputs(feeds: Iterable[Feed]) -> str:
    """Return a remark, as a sentence, where each input of the user's feeds has one value everywhere; empty else."""
    given = [feed for feed in feeds if feed.origin is Origin.REAL]
    if not all(array.size == 0 or _is_constant(array) for feed in given for array in feed.tensors.values()):
        return ""
    return next((odd.sentence for odd in oddities(given, ()) if odd.kind in (OddKind.ZERO, OddKind.CONSTANT)), "")


def _of_feed(tensors: Mapping[str, np.ndarray], specs: Mapping[str, ValueSpec]) -> Iterator[Oddity]:
    numbers = {name: array for name, array in tensors.items() if array.size and array.dtype.kind != "O"}
    largest = max(numbers, key=lambda name: numbers[name].size, default="")
    all_constant = all(_is_constant(array) for array in numbers.values())
    for name, array in numbers.items():
        if DType.from_numpy(array.dtype).is_float:
            yield from _of_floats(name, array, specs.get(name))
        if array.size > 1 and (all_constant or name == largest) and _is_constant(array):
            value = array.flat[0]
            kind = OddKind.CONSTANT if value else OddKind.ZERO
            words = f"has the value {value} everywhere" if value else "is zero everywhere"
            yield Oddity(kind, name, f"input '{name}' {words}, so that most faults cannot show")


def _of_floats(name: str, array: np.ndarray, spec: ValueSpec | None) -> Iterator[Oddity]:
    wide = array.astype(np.float64) if array.dtype.kind != "f" else array
    nans, infs = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
    if nans or (infs and not _is_mask(wide)):
        found = " and ".join(f"{number:,} {word}" for number, word in ((nans, "NaN"), (infs, "Inf")) if number)
        words = f"holds {found} among {count(array.size, 'value')}: their effects on results are not the engine's fault"
        yield Oddity(OddKind.NON_FINITE, name, f"input '{name}' {words}")
    elif _are_pixels(wide):
        words = f"holds whole numbers from {wide.min():.0f} to {wide.max():.0f}, as pixels before they are scaled"
        yield Oddity(OddKind.PIXELS, name, f"input '{name}' {words}: scale it as for the training")
    if _has_channels_last(array.shape, spec):
        words = f"has shape {list(array.shape)}, as NHWC data: a model that takes NCHW needs transpose(0, 3, 1, 2)"
        yield Oddity(OddKind.CHANNELS_LAST, name, f"input '{name}' {words}")


def _is_constant(array: np.ndarray) -> bool:
    return bool((array == array.flat[0]).all())


def _is_mask(array: np.ndarray) -> bool:
    """Return whether numbers are only 0 and -Inf, which are added to scores."""
    return bool(((array == 0) | (array == -np.inf)).all())


def _are_pixels(array: np.ndarray) -> bool:
    """Return whether numbers are whole, from 0 to 255, and use most of that range."""
    if array.ndim < PIXEL_RANK or array.size < FEWEST_PIXELS:
        return False
    low, high = float(array.min()), float(array.max())
    return low >= 0 and BRIGHTEST / 2 < high <= BRIGHTEST and bool((array == np.floor(array)).all())


def _has_channels_last(shape: tuple[int, ...], spec: ValueSpec | None) -> bool:
    """Return whether a shape that a model declares open has its channels last."""
    declared = spec.shape if spec is not None else None
    is_open = declared is None or (len(declared) == 4 and not any(isinstance(size, int) for size in declared[1:]))
    return is_open and len(shape) == 4 and shape[3] in CHANNELS and min(shape[1:3]) > max(CHANNELS)
