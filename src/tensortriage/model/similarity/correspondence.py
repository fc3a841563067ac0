"""Which node, value and constant of a model stands for which of the model it was made from.

A model that was typed in fp16, quantized, simplified or exported again is first brought back to the form of the
original: float32 in place of narrow types, quantizers bypassed, and BatchNormalizations folded in the original where
they were folded on the way. What then still differs (`tensortriage.model.similarity.diff`) is a change of the network.
"""

import dataclasses
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import bypass, dequantized, quantizers
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.diff import ModelDiff, diff
from tensortriage.model.similarity.weight_changes import is_rounded
from tensortriage.model.transforms.folded_norms import normalizations, with_folded_norms
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.model.transforms.widen import narrow_nodes, widened
from tensortriage.values.dtype import DType, Precision


@dataclasses.dataclass(frozen=True)
class Correspondence:
    """A model beside the one it was made from.

    Attributes:
        original: The original, with BatchNormalizations folded where the other has them folded.
        changed: The other, as it is.
        plain: The other in float32 and without quantizers.
        diff: What differs between original and plain.
    """

    original: Model
    changed: Model
    plain: Model
    diff: ModelDiff

    @classmethod
    def of(cls, original: Model, changed: Model) -> "Correspondence":
        """Find out what stands for what.

        Args:
            original: The model taken as right.
            changed: The model made from it.
        """
        plain = changed
        if quantizers(changed.graph) and not quantizers(original.graph):
            weights = {pair.result: dequantized(changed.graph, pair) for pair in quantizers(changed.graph)
                       if pair.of_weight}  # fmt: skip
            plain = bypass(changed, weights)
        if narrow_nodes(changed) and not narrow_nodes(original):
            plain = widened(plain)
        if normalizations(plain.ir) < normalizations(original.ir):
            original = with_folded_norms(original)
        return cls(original, changed, plain, diff(original, plain))

    @cached_property
    def typed(self) -> Mapping[str, Precision]:
        """Nodes of the original that the other computes in a narrow type, and which; empty when none is."""
        if narrow_nodes(self.original):
            return {}
        narrow = narrow_nodes(self.changed)
        return {node: narrow[other] for node, other in self.diff.pairs.items() if other in narrow}

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Nodes of the original that the other computes in float32 although it is typed in a narrow type elsewhere."""
        specs = value_specs(self.original)
        made = {node.name: specs.get(node.outputs[0]) for node in self.original.graph.nodes if node.outputs}
        floats = {name for name, spec in made.items() if spec is not None and spec.dtype is DType.FLOAT}
        return tuple(name for name in self.diff.pairs if name in floats and name not in self.typed)

    @cached_property
    def constants(self) -> Mapping[str, str]:
        """Constants of the plain model to those that the counterpart of their user reads at their place."""
        found = {}
        for node, other in self.diff.pairs.items():
            operands = self.plain.graph.node(other).inputs
            for before, after in zip(self.original.graph.node(node).inputs, operands, strict=False):
                if before in self.original.graph.constants and after in self.plain.graph.constants:
                    found[after] = before
        return found

    def restored(self) -> Model:
        """Return the plain model with the original's numbers where its own are only rounded."""
        back = {}
        for after, before in self.constants.items():
            was, now = self.original.graph.weight(before), self.plain.graph.weight(after)
            if was.shape == now.shape and was.dtype == now.dtype == np.float32 and is_rounded(was, now):
                back[after] = was
        return freeze(self.plain, back) if back else self.plain

    def weights(self) -> dict[str, np.ndarray]:
        """Return the original of every quantized weight of the other, by the result of its DequantizeLinear."""
        found, graph = {}, self.original.graph
        for pair in quantizers(self.changed.graph):
            before = self.constants.get(pair.result, "") if pair.of_weight else ""
            if before and graph.constants[before].shape == self.changed.graph.constants[pair.stored].shape:
                found[pair.result] = graph.weight(before)
        return found
