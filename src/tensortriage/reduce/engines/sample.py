"""One set of inputs of the model with everything the reference computed from it, and pieces that are fed from it."""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.repro.repro_case import Repro, ReproSample
from tensortriage.reduce.request import Ends
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


@frozen_dataclass
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


def golden_pieces(model: Model, samples: tuple[GoldenSample, ...], ends: Ends = Ends.BOTH) -> Pieces:
    """Return the pieces of a model as samples know its values; shapes that they agree on are constants."""
    declared = value_specs(model)
    symbols = frozenset(size for spec in model.inputs for size in spec.shape or () if isinstance(size, str))
    specs = {**declared, **_recorded(samples, declared, symbols)}
    return Pieces(model, specs=specs, ends=ends, frozen=_agreed(samples, frozenset(model.graph.shape_like)))


def repro_of(pieces: Pieces, nodes: Sequence[str], samples: Sequence[GoldenSample]) -> Repro:
    """Return a piece with its inputs and expected outputs on every sample."""
    piece = pieces.cut(nodes)
    fed = [
        ReproSample(
            {spec.name: sample[spec.name] for spec in piece.inputs},
            {spec.name: sample[spec.name] for spec in piece.outputs if spec.name in sample},
        )
        for sample in samples
    ]
    return Repro(piece, tuple(fed))


def _recorded(
    samples: tuple[GoldenSample, ...], declared: Mapping[str, ValueSpec], symbols: frozenset[str]
) -> dict[str, ValueSpec]:
    """Return specs of every value by the samples: sizes declared dynamic, or that differ, stay dynamic.

    Args:
        samples: At least one.
        declared: Specs of the model and of shape inference.
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
            sizes = [
                declared_size if declared_size in symbols else size
                for declared_size, size in zip(known.shape, sizes, strict=True)
            ]
        found[name] = ValueSpec(name, first.dtype, tuple(sizes))
    return found


def _agreed(samples: tuple[GoldenSample, ...], names: frozenset[str]) -> dict[str, np.ndarray]:
    """Return the given values that are equal in all samples."""
    found: dict[str, np.ndarray] = {}
    for name in sorted(names):
        arrays = [sample[name] for sample in samples if name in sample]
        if len(arrays) == len(samples) and all(np.array_equal(arrays[0], other) for other in arrays[1:]):
            found[name] = arrays[0]
    return found
