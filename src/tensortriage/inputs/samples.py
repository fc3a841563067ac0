"""Feeds that are given in Python: arrays by name, several of them, or what a data loader of PyTorch yields."""

import itertools
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensortriage.errors import DataError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage_worker.function_adapter import as_array, by_name

_logger = logging.getLogger(__name__)
CURE = (
    "give inputs as a dict from input name to array, a list of such dicts, a file, or a data loader that yields dicts, "
    "or tuples in the order of the inputs"
)


class Samples:
    """Samples that are read when they are needed, and are the same each time, although the loader may shuffle.

    Args:
        given: Anything that can be iterated.
    """

    def __init__(self, given: Iterable[Any]) -> None:
        self._rest = iter(given)
        self._read: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        for place in itertools.count():
            if place == len(self._read):
                try:
                    self._read.append(next(self._rest))
                except StopIteration:
                    return
            yield self._read[place]


def samples_of(given: object) -> Sequence[str] | Samples:
    """Return the given inputs as samples: paths, or samples.

    Args:
        given: Paths; a feed, a mapping from name to array, one array; or an iterable of these.

    Raises:
        TypeError: For anything else.
    """
    if isinstance(given, (str, os.PathLike)):
        return (os.fspath(given),)
    if isinstance(given, (list, tuple)) and given and all(isinstance(each, (str, os.PathLike)) for each in given):
        return tuple(os.fspath(each) for each in given)
    if isinstance(given, (Mapping, Feed, np.ndarray)) or hasattr(given, "detach"):
        return Samples([given])
    if isinstance(given, Iterable) and not isinstance(given, (bytes, bytearray)):
        if type(getattr(given, "sampler", None)).__name__ == "RandomSampler":
            _logger.warning("the data loader shuffles: the next call sees other batches; shuffle=False keeps them")
        return Samples(given)
    raise TypeError(CURE)


def sample_feeds(samples: Samples, names: list[str]) -> Iterator[Feed]:
    """Yield samples as feeds.

    Args:
        samples: The samples.
        names: The model's inputs, in the order of tuples.

    Raises:
        DataError: For one that is no feed (``sample-not-feed``).
    """
    for number, sample in enumerate(samples):
        if isinstance(sample, Feed):
            yield sample
            continue
        found = by_name(sample, names)
        if not isinstance(found, Mapping):
            raise DataError(f"sample {number} is a {type(sample).__name__}", slug="sample-not-feed", cure=CURE)
        tensors = {str(name): _array(value, str(name), number) for name, value in found.items()}
        yield Feed(f"given[{number}]", tensors, Origin.REAL)


def _array(value: Any, name: str, number: int) -> np.ndarray:
    array = as_array(value)
    if array.dtype == object and not all(isinstance(item, (str, bytes)) for item in array.reshape(-1)):
        raise DataError(
            f"sample {number}: '{name}' is a {type(value).__name__}, not an array", slug="sample-not-feed", cure=CURE
        )
    return array
