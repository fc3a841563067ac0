"""A feed is one set of input tensors, with the knowledge of where it came from."""

import dataclasses
import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np

LABEL_NAMES = frozenset({
    "label", "labels", "target", "targets", "y", "y_true", "truth", "ground_truth", "gt", "class", "classes",
    "category", "boxes", "bboxes", "gt_boxes", "gt_classes",
})  # fmt: skip
"""Names, in small letters, that labels go by in files and loaders."""


class LazyTensors(Mapping[str, np.ndarray]):
    """A mapping whose arrays are read on demand, every time again."""

    def __init__(self, loaders: Mapping[str, Callable[[], np.ndarray]]) -> None:
        self._loaders = loaders

    def __getitem__(self, name: str) -> np.ndarray:
        return self._loaders[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._loaders

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


class Origin(enum.Enum):
    """Origin of a feed; verdicts state it because random data alone prove little."""

    REAL = "real"
    RANDOM = "random"


@dataclasses.dataclass(frozen=True)
class Feed:
    """One set of input tensors.

    Attributes:
        name: Short and unique within a command, e.g. ``digits.npz[0]`` or ``random[0]``.
        tensors: Model input name to array.
        origin: Given by the user, or made up.
        labels: What came with them and is no input, by name: what a task metric knows the right answer from.
    """

    name: str
    tensors: Mapping[str, np.ndarray]
    origin: Origin
    labels: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The digest of its content; see `feed_digest`."""
        return feed_digest(self.tensors)

    @property
    def made_up(self) -> "Feed":
        """The same feed, marked as not real data."""
        return dataclasses.replace(self, origin=Origin.RANDOM)


def feed_digest(tensors: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of names, dtypes, shapes and bytes of a feed.

    Args:
        tensors: By name, of any shapes and types, in any order.

    Returns:
        64 hexadecimal digits.
    """
    state = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name]
        state.update(f"{name}\0{array.dtype}\0{array.shape}\0".encode())
        if array.dtype.kind == "O":
            state.update(repr(array.tolist()).encode())
        else:
            state.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return state.hexdigest()


def origin_of(feeds: Iterable[Feed]) -> str:
    """Return ``real`` when any of the feeds is, else ``random``."""
    return "real" if any(feed.origin is Origin.REAL for feed in feeds) else "random"
