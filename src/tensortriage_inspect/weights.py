"""Statistics of every stored tensor, as ``triage inspect model --show weights`` prints them."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from tensortriage.api import Model
from tensortriage.engines.sdk import DType
from tensortriage.model.sdk import blocks


@dataclasses.dataclass(frozen=True, slots=True)
class WeightFacts:
    """One initializer, or the output of a Constant node.

    Attributes:
        name: Value name.
        dtype: Label of its element type.
        shape: Dimensions.
        nbytes: Size as stored.
        minimum, maximum, mean: Over the finite elements, as float64; None when there are none (or for strings).
        nonfinite: Elements that are NaN or infinite.
        zeros: Elements equal to zero.
        values: The array, abbreviated as numpy does.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    nonfinite: int
    zeros: int
    values: str


def weight_facts(model: Model) -> Iterator[WeightFacts]:
    """Yield facts on every constant of the main graph, reading one tensor at a time."""
    for name, spec in model.graph.constants.items():
        array = model.graph.weight(name)
        dtype = spec.dtype or DType.from_numpy(array.dtype)
        nbytes = (array.size * dtype.bits + 7) // 8
        text = np.array2string(_shown(array), threshold=64, edgeitems=2, max_line_width=100)
        yield WeightFacts(name, dtype.label, array.shape, nbytes, *_statistics(array, dtype), text)


def _statistics(array: np.ndarray, dtype: DType) -> tuple[float | None, float | None, float | None, int, int]:
    if not (dtype.is_float or dtype.is_integer):
        return None, None, None, 0, 0
    low, high, total, count, nonfinite, zeros = np.inf, -np.inf, 0.0, 0, 0, 0
    for block in blocks(array):
        wide = block.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        nonfinite += wide.size - finite.size
        zeros += int((wide == 0).sum())
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            total, count = total + float(finite.sum()), count + finite.size
    if not count:
        return None, None, None, nonfinite, zeros
    return low, high, total / count, nonfinite, zeros


def _shown(array: np.ndarray) -> np.ndarray:
    """Return an array that numpy can print: types without a printer become the same numbers as float32."""
    return array if array.dtype.kind in "biufcO" else array.astype(np.float32)
