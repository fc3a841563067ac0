"""The stored figures of a tensor in a committed file: all of a small one, a sketch of a large one.

A sketch is `PROJECTIONS` random projections (`tensortriage.compare.metrics.random_projection`): the squared differences
of two sketches have the squared distance of the tensors as their mean, wherever in the tensor the difference is. Of so
many, the estimate of a distance spreads by 6 %, and exceeds the distance by a third once in a million times:
chi-squared with as many degrees of freedom, as Wilson and Hilferty (PNAS 17, 1931) approximate it. So a sketch
separates a distance of 1.5 limits from one of 1, whatever the size of the tensor. Of integers, which are equal or not,
it is a sample of elements, with the spread of a share that is sampled.
"""

import base64
import dataclasses
import hashlib
import math

import numpy as np

from tensortriage.envelope.sdk import difference, project_rows

PROJECTIONS = 128
SAMPLED = 1024
"""Elements of a large tensor of integers that are kept."""
SMALL = 128
"""Elements of a tensor that is kept whole: as many numbers as its sketch has."""
QUANTILE = 4.75
"""Standard deviations of a normal variable that one in a million exceeds."""
TEXT = "text"
"""Type of strings."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeptTensor:
    """The stored part of a tensor.

    Attributes:
        dtype: Its numpy type.
        sha256: Digest of its content.
        rms: Root of the mean square of its finite elements; 0 for other types than numbers.
        nonfinite: Digest of the places and kinds of NaN and Inf; empty for none.
        values: Its elements in order, separated by blanks, or the sampled ones; empty where there is a sketch.
        sketch: Its projections, float64 in base64; empty where there are values.
    """

    dtype: str
    shape: tuple[int, ...]
    sha256: str
    rms: float = 0.0
    nonfinite: str = ""
    values: str = ""
    sketch: str = ""

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether all elements are kept."""
        return self.count <= SMALL

    @property
    def exact(self) -> bool:
        """Whether elements are equal or not."""
        return "float" not in self.dtype  # bfloat16 and its siblings are no floats to numpy


@dataclasses.dataclass(frozen=True, slots=True)
class KeptDistance:
    """How far a tensor is from another, of the same kind.

    Attributes:
        error: Relative RMS error, of exact types the share of unequal elements; inf for another shape, type, NaN or
            Inf.
        estimated: From how many numbers it is estimated; 0 where all elements were compared.
        exact: Whether the elements are equal or not.
    """

    error: float
    estimated: int = 0
    exact: bool = False

    def within(self, limit: float) -> bool:
        """Return whether the estimated distance is within a limit; NaN and Inf never are."""
        if self.error == 0.0 or not self.estimated:
            return self.error <= limit
        if self.exact:
            spread = QUANTILE * math.sqrt(limit * (1.0 - limit) / self.estimated) if 0.0 < limit < 1.0 else 0.0
            return self.error <= limit + spread
        return self.error <= limit * excess(self.estimated)


def excess(projections: int) -> float:
    """Return the factor by which one estimate in a million exceeds the true distance."""
    spread = 2.0 / (9.0 * projections)
    return float((1.0 - spread + QUANTILE * math.sqrt(spread)) ** 1.5)


def figures_of(array: np.ndarray) -> KeptTensor:
    """Return the stored part of a tensor."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind in "OSU":
        words = [str(word) for word in array.ravel()]
        return KeptTensor(TEXT, array.shape, _digest(repr(words).encode()))
    name, sha256 = array.dtype.name, _digest(array.tobytes())
    if "float" not in name:
        return KeptTensor(name, array.shape, sha256, values=" ".join(map(str, _sample(array).tolist())))
    numbers = array.astype(np.float64).ravel()
    finite = np.isfinite(numbers)
    nonfinite = ""
    if not finite.all():
        kinds = np.where(np.isnan(numbers), 2, np.where(finite, 0, np.sign(numbers)))
        nonfinite = _digest(kinds.astype(np.int8).tobytes())
    kept = np.where(finite, numbers, 0.0)
    rms = math.sqrt(float(np.mean(kept**2, where=finite))) if finite.any() else 0.0
    rounded = float(f"{rms:.6g}")
    if array.size <= SMALL:
        return KeptTensor(name, array.shape, sha256, rounded, nonfinite, values=_text(array.ravel()))
    projected = project_rows(kept.reshape(1, -1), PROJECTIONS)[0]
    return KeptTensor(
        name, array.shape, sha256, rounded, nonfinite, sketch=base64.b64encode(projected.tobytes()).decode()
    )


def distance(reference: KeptTensor, target: KeptTensor) -> KeptDistance:
    """Return how far a tensor is from the one that it should be."""
    if reference.sha256 == target.sha256 and (reference.dtype, reference.shape) == (target.dtype, target.shape):
        return KeptDistance(0.0)
    if reference.shape != target.shape or reference.exact != target.exact or reference.nonfinite != target.nonfinite:
        return KeptDistance(math.inf)
    if reference.dtype == TEXT:
        return KeptDistance(1.0, exact=True)
    if reference.exact:
        unequal = _array(reference) != _array(target)
        share = max(float(unequal.mean()), 1.0 / reference.count)
        return KeptDistance(share, 0 if reference.whole else len(unequal), exact=True)
    if reference.whole:
        return KeptDistance(difference(_array(reference), _array(target)))
    apart = math.sqrt(float(np.mean((_projections(reference) - _projections(target)) ** 2)) / reference.count)
    return KeptDistance(0.0 if apart == 0.0 else apart / reference.rms if reference.rms else math.inf, PROJECTIONS)


def _sample(array: np.ndarray) -> np.ndarray:
    """Return all elements, or `SAMPLED` at places that depend on their number only."""
    flat = array.ravel()
    if flat.size <= max(SMALL, SAMPLED):
        return flat
    return flat[np.random.Philox(key=flat.size).random_raw(SAMPLED) % flat.size]


def _text(floats: np.ndarray) -> str:
    """Return numbers as text that gives them back, with no more digits than their type needs."""
    return " ".join(map(str, floats if floats.dtype.kind == "f" else floats.astype(np.float32)))


def _array(figures: KeptTensor) -> np.ndarray:
    words = figures.values.split()
    if figures.exact:
        return np.array(words)
    return np.array(words, np.float64 if figures.dtype == "float64" else np.float32).astype(np.float64)


def _projections(figures: KeptTensor) -> np.ndarray:
    return np.frombuffer(base64.b64decode(figures.sketch), np.float64)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
