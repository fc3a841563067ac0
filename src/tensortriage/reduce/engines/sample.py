"""One set of inputs of the model with everything the reference computed from it."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tensortriage.inputs.feed import Feed
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


@dataclasses.dataclass(frozen=True, slots=True)
class GoldenSample:
    """A feed and its golden values; pieces of the model are fed from both.

    Attributes:
        feed: The inputs of the model.
        golden: Every tensor that its nodes make, as the reference computed it.
    """

    feed: Feed
    golden: TensorStore

    @property
    def name(self) -> str:
        """Name of the feed."""
        return self.feed.name

    def __contains__(self, value: str) -> bool:
        return value in self.golden or value in self.feed.tensors

    def __getitem__(self, value: str) -> np.ndarray:
        if value in self.golden:
            return np.asarray(self.golden[value])
        return self.feed.tensors[value]

    def spec(self, value: str) -> ValueSpec:
        """Return element type and shape of a value."""
        return self.golden.spec(value) if value in self.golden else ValueSpec.of(value, self.feed.tensors[value])

    def names(self) -> tuple[str, ...]:
        """Return every value there is."""
        return (*self.feed.tensors, *self.golden.names())


def recorded(
    samples: tuple[GoldenSample, ...], declared: Mapping[str, ValueSpec], symbols: frozenset[str]
) -> dict[str, ValueSpec]:
    """Return what the samples say of every value: sizes that are declared dynamic, or differ between samples, stay so.

    Args:
        samples: At least one.
        declared: What the model and shape inference say.
        symbols: Names of the dynamic sizes of the model's inputs; inference makes up others, which are not kept.
    """
    found: dict[str, ValueSpec] = {}
    for name in samples[0].names():
        seen = [sample.spec(name) for sample in samples if name in sample]
        first, known = seen[0], declared.get(name)
        shapes = [spec.shape for spec in seen if spec.shape is not None]
        if len({len(shape) for shape in shapes}) != 1:
            found[name] = ValueSpec(name, first.dtype, None)
            continue
        sizes = [dims[0] if len(set(dims)) == 1 else None for dims in zip(*shapes, strict=True)]
        if known is not None and known.shape is not None and len(known.shape) == len(sizes):
            sizes = [told if told in symbols else size for told, size in zip(known.shape, sizes, strict=True)]
        found[name] = ValueSpec(name, first.dtype, tuple(sizes))
    return found


def agreed(samples: tuple[GoldenSample, ...], names: frozenset[str]) -> dict[str, np.ndarray]:
    """Return those of some values that are equal in all samples."""
    found: dict[str, np.ndarray] = {}
    for name in sorted(names):
        arrays = [sample[name] for sample in samples if name in sample]
        if len(arrays) == len(samples) and all(np.array_equal(arrays[0], other) for other in arrays[1:]):
            found[name] = arrays[0]
    return found
