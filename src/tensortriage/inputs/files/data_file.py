"""The contents of a data file in any format: one series of iterations (inputs), or one per runner (saved outputs)."""

import enum
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass


class DataFormat(enum.Enum):
    """The file formats of feeds and saved outputs; the value is the word users write."""

    NPZ = "npz"
    NPY = "npy"
    TEST_DATA = "test-data-set"
    POLYGRAPHY = "json"
    SAFETENSORS = "safetensors"
    STORE = "store"


class Kind(enum.Enum):
    """Kind of a file's iterations; formats without one hold inputs."""

    INPUTS = "inputs"
    OUTPUTS = "outputs"


@frozen_dataclass
class Iteration:
    """One set of tensors.

    Attributes:
        tensors: Name to array; may read from disk on every access.
        seconds: How long the run that made them took; None when not recorded or not a run.
    """

    tensors: Mapping[str, np.ndarray]
    seconds: float | None = None


@frozen_dataclass
class Series:
    """The iterations of one runner.

    Attributes:
        runner: Name of the producer of the outputs; empty for inputs. Two series of a file may have the same name.
        iterate: Starts reading; may be called any number of times.
    """

    runner: str
    iterate: Callable[[], Iterator[Iteration]]

    def __iter__(self) -> Iterator[Iteration]:
        return self.iterate()


@frozen_dataclass
class DataFile:
    """One file or directory of feeds or saved outputs, opened but not read."""

    path: Path
    format: DataFormat
    kind: Kind
    series: tuple[Series, ...]
