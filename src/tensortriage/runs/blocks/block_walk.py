"""Walks through a model block by block: each is a model of its own, fed with the reference's values.

Only one block's weights are in use at a time, in a file of its own; the tensors that cross borders are kept in the
case, for every feed, so that a second walk runs nothing. Each block gets golden inputs, so its errors originate in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tensortriage.engines.spec import EngineSpec
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.cutting.extract import extract
from tensortriage.model.cutting.narrow_cuts import ModelBlock
from tensortriage.model.model import ExternalData, Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import Experiment, ObservedOutputs
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


@frozen_dataclass
class FedBlock:
    """One block, ready to be run.

    Attributes:
        number: Counted from 1.
        path: Its model file, with its weights next to it.
        feeds: Its inputs, golden values where it was cut; one feed for each feed of the whole.
    """

    number: int
    block: ModelBlock
    path: Path
    feeds: tuple[Feed, ...]


class BlockWalk:
    """The blocks of a model in order.

    Args:
        model: The whole model.
        feeds: Its feeds.
        blocks: How it is cut.
        reference: The engine whose values the next block reads.
        lab: The lab that asks engines; its workspace holds files of blocks, and its case the tensors that cross
            borders.
    """

    def __init__(
        self,
        model: Model,
        feeds: Sequence[Feed],
        blocks: Sequence[ModelBlock],
        *,
        reference: EngineSpec,
        lab: Lab,
    ) -> None:
        self.blocks = tuple(blocks)
        self._model = model
        self._feeds = tuple(feeds)
        self._reference = reference
        self._lab = lab
        self._folder = lab.workspace.folder
        self._specs = value_specs(model)
        self._stores: list[dict[str, TensorStore]] = [{} for _ in self._feeds]

    def __iter__(self) -> Iterator[FedBlock]:
        """Yield every block; its file is deleted before the next one."""
        for number in range(1, len(self.blocks) + 1):
            made = self.make(number, self._folder / "block.onnx")
            try:
                yield made
                self._carry_on(made)
            finally:
                remove(made.path)

    def carried(self, number: int, spec: EngineSpec) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        """Return the model's outputs that follow from another engine's results of one block, on the first feed.

        The later blocks run on the reference, so that nothing but that block is to blame for the difference.

        Args:
            number: Number of the block, from 1; all blocks have been walked through.
            spec: The engine that runs this block.

        Returns:
            Golden array and the one so made, by the name of the output; outputs that earlier blocks make are left out.
        """
        instead: dict[str, np.ndarray] = {}
        for place in range(number, len(self.blocks) + 1):
            self._lab.progress(f"carrying on through block {place} of {len(self.blocks)}")
            made = self.make(place, self._folder / "carried.onnx", instead)
            engine = spec if place == number else self._reference
            with self._lab.session(engine, Model.load(made.path)) as outputs_of:
                outputs = outputs_of(made.feeds[0])
            instead |= {name: outputs[name] for name in made.block.outputs}
            remove(made.path)
        golden = self._stores[0]
        names = (spec.name for spec in self._model.outputs)
        return {name: (golden[name][name], instead[name]) for name in names if name in instead}

    def make(self, number: int, path: Path, instead: Mapping[str, np.ndarray] = MappingProxyType({})) -> FedBlock:
        """Write the file of a block that was reached before.

        Args:
            number: From 1.
            path: The file.
            instead: Values that it is fed with on all feeds instead of the golden ones.
        """
        block = self.blocks[number - 1]
        borders = [self._inputs(index, block) | _of(instead, block) for index in range(len(self._feeds))]
        specs = {**self._specs, **{name: _spec(name, [values[name] for values in borders]) for name in block.inputs}}
        piece = extract(self._model, block.nodes, specs=specs, outputs=block.outputs or None)
        fixed = self._fixed(borders)
        if fixed:
            piece = freeze(piece, fixed)
        piece.save(path, external_data=ExternalData.ALWAYS)
        wanted = {spec.name for spec in piece.inputs}
        feeds = tuple(
            Feed(feed.name, {name: values[name] for name in values if name in wanted}, feed.origin)
            for feed, values in zip(self._feeds, borders, strict=True)
        )
        return FedBlock(number, block, path, feeds)

    def _carry_on(self, made: FedBlock) -> None:
        """Run a block on the reference and keep the values that later blocks need."""
        self._lab.progress(f"running {self._reference} on block {made.number} of {len(self.blocks)}")
        model, stored = Model.load(made.path), ObservedOutputs(stored=True)
        with self._lab.session(self._reference, model):
            for known, feed in zip(self._stores, made.feeds, strict=True):
                experiment = Experiment(engine=self._reference, model=model, feed=feed, observed=stored)
                known |= dict.fromkeys(made.block.outputs, self._lab.answer(experiment).tensors)

    def _inputs(self, index: int, block: ModelBlock) -> dict[str, np.ndarray]:
        """Return the inputs of a block on one feed."""
        tensors, stores = self._feeds[index].tensors, self._stores[index]
        return {name: tensors[name] if name in tensors else stores[name][name] for name in block.inputs}

    def _fixed(self, borders: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Return the shape-deciding values that cross a border alike on all feeds: engines need them as constants.

        Inputs of the whole model stay inputs.
        """
        shapes = self._model.graph.shape_like
        return {
            name: np.array(first)
            for name, first in borders[0].items()
            if name in shapes
            and self._model.graph.producer(name) is not None
            and all(np.array_equal(first, values[name]) for values in borders)
        }


def _of(values: Mapping[str, np.ndarray], block: ModelBlock) -> dict[str, np.ndarray]:
    return {name: values[name] for name in block.inputs if name in values}


def remove(path: Path) -> None:
    """Remove the file of a block and its weights."""
    path.unlink(missing_ok=True)
    path.with_name(path.name + ".data").unlink(missing_ok=True)


def _spec(name: str, arrays: Sequence[np.ndarray]) -> ValueSpec:
    """Return the type and shape of a value on all feeds; dimensions that differ are open."""
    first = ValueSpec.of(name, arrays[0])
    shapes = [array.shape for array in arrays]
    if len({len(shape) for shape in shapes}) > 1:
        return ValueSpec(name, first.dtype, None)
    return ValueSpec(name, first.dtype, tuple(s[0] if len(set(s)) == 1 else None for s in zip(*shapes, strict=True)))
