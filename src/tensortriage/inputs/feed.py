"""A feed is one set of input tensors, with the knowledge of where it came from."""

import dataclasses
import enum
from collections.abc import Mapping

import numpy as np


class Origin(enum.Enum):
    """Where a feed came from; verdicts say so because random data alone prove little."""

    REAL = "real"
    RANDOM = "random"


@dataclasses.dataclass(frozen=True, slots=True)
class Feed:
    """One set of input tensors.

    Attributes:
        name: Short and unique within a command, e.g. ``digits.npz[0]`` or ``random[0]``.
        tensors: Model input name to array.
        origin: Given by the user, or made up.
    """

    name: str
    tensors: Mapping[str, np.ndarray]
    origin: Origin
