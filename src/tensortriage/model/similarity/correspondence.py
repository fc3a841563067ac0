"""Maps nodes, values and constants of a model to those of the model that it was made from.

A model that was typed in fp16, quantized, simplified or exported again is first brought back to the form of the
original: float32 in place of narrow types, quantizers bypassed, and BatchNormalizations folded in the original where
they were folded on the way. What then still differs (`tensortriage.model.similarity.diff`) is a change of the network.
"""

import dataclasses
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.as_pairs import as_pairs, owner_of
from tensortriage.model.quantization.qdq import bypass, dequantized, may_rectify, quantizers, steps
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.diff import ModelDiff, diff
from tensortriage.model.similarity.weight_changes import is_rounded
from tensortriage.model.transforms.folded_norms import normalizations, with_folded_norms
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.model.transforms.widen import narrow_nodes, widened
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.grouping import grouped

_LEAST_COSINE = 0.3
_SAME_DIRECTION = 12
"""Decimals to which a cosine in float64 is exact, for as many numbers as a weight has."""


@dataclasses.dataclass(frozen=True)
class Correspondence:
    """A model next to the one that it was made from.

    Attributes:
        original: The original, with BatchNormalizations folded where the other has them folded.
        changed: The other, as it is.
        paired: The other with all its quantizers written as pairs.
        plain: The other in float32 and without quantizers.
        diff: What differs between original and plain.
        relus: Values behind which a quantizer took over the original's Relu.
    """

    original: Model
    changed: Model
    paired: Model
    plain: Model
    diff: ModelDiff
    relus: frozenset[str] = frozenset()

    @classmethod
    def of(cls, original: Model, changed: Model) -> "Correspondence":
        """Match the two models.

        Args:
            original: The model assumed to be right.
            changed: The model made from it.
        """
        paired = as_pairs(changed)
        quantized = bool(quantizers(paired.graph)) and not quantizers(original.graph)
        weights = {}
        if quantized:
            pairs = (pair for pair in quantizers(paired.graph) if pair.of_weight)
            weights = {pair.result: dequantized(paired.graph, pair) for pair in pairs}
        wide = widened if narrow_nodes(changed) and not narrow_nodes(original) else _as_it_is
        plain = wide(bypass(paired, weights) if quantized else paired)
        if normalizations(plain.ir) < normalizations(original.ir):
            original = with_folded_norms(original)
        found, relus = diff(original, plain), frozenset[str]()
        cut = {pair.value for pair in quantizers(paired.graph) if may_rectify(paired.graph, pair)}
        if quantized and (relus := _relus_taken_over(original, plain, found) & cut):
            plain = wide(bypass(paired, weights, relus=relus))
            found = diff(original, plain)
        return cls(original, changed, paired, plain, found, relus)

    def unquantized(self, weights: Mapping[str, np.ndarray]) -> Model:
        """Return the other model without its quantizers, with weights in their place and the Relus they took over."""
        return bypass(self.paired, weights, relus=self.relus)

    def in_file(self, name: str) -> Node:
        """Return the node of the other model that a node of its rewritten form belongs to."""
        return owner_of(self.changed.graph, name) or self.paired.graph.node(name)

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
        """Constants of the plain model to those that the counterpart of their user, or a body of it, reads there."""
        found = {}
        for node, other in self.diff.pairs.items():
            was, now = self.original.graph.node(node), self.plain.graph.node(other)
            read = zip((*was.inputs, *was.captures), (*now.inputs, *now.captures), strict=False)
            for before, after in read:
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
        weights, graph = self.weights(), self.paired.graph
        for pair in quantizers(graph):
            if pair.result in weights and pair.result in self.plain.graph.constants:
                was = weights[pair.result]
                off = np.abs(was - dequantized(graph, pair)) / steps(graph, pair, was.ndim)
                if off.max(initial=0.0) <= 1.0 and np.square(off).mean() <= 0.25:  # 1/12 where rounded to nearest
                    back[pair.result] = was
        return freeze(self.plain, back) if back else self.plain

    def weights(self) -> dict[str, np.ndarray]:
        """Return the originals of quantized weights, by the result of the DequantizeLinear; those that may be it.

        What reads a weight may have been rewritten before it was quantized, as MatMul and Add to Gemm: no node of the
        original stands for it then. So a weight that is not found by what reads it is looked for by its numbers.
        """
        found, graph = {}, self.original.graph
        for pair in quantizers(self.paired.graph):
            if not pair.of_weight:
                continue
            now = dequantized(self.paired.graph, pair)
            before = graph.weight(self.constants[pair.result]) if pair.result in self.constants else None
            if before is not None and before.shape == now.shape:
                if _is_kin(before, now):
                    found[pair.result] = before
            elif (weight := self.most_alike(now)) is not None:
                found[pair.result] = weight
        return found

    def most_alike(self, now: np.ndarray) -> np.ndarray | None:
        """Return the constant of the original most similar to given numbers, maybe with its last axes exchanged.

        By the cosine, so that a wrong scale hides nothing; of the constants in one direction, as all single numbers of
        a sign are, the nearest.
        """
        best, closeness = None, (_LEAST_COSINE, -np.inf)
        wide = now.astype(np.float64)
        for was in self._floats.get(tuple(sorted(now.shape)), ()):
            turned = (was, was.swapaxes(-1, -2)) if was.ndim in (2, 3) else (was,)
            for array in (one for one in turned if one.shape == now.shape):
                other = array.astype(np.float64)
                norms = float(np.linalg.norm(other) * np.linalg.norm(wide))
                cosine = float(other.ravel() @ wide.ravel()) / norms if norms else float(np.array_equal(other, wide))
                alike = (round(cosine, _SAME_DIRECTION), -float(np.linalg.norm(other - wide)))
                if alike > closeness:
                    best, closeness = array, alike
        return best

    @cached_property
    def _floats(self) -> Mapping[tuple[int, ...], tuple[np.ndarray, ...]]:
        """Float32 constants of the original by their lengths in ascending order."""
        graph = self.original.graph
        arrays = (graph.weight(name) for name, spec in graph.constants.items() if spec.dtype is DType.FLOAT)
        found = grouped((tuple(sorted(array.shape)), array) for array in arrays)
        return {lengths: tuple(arrays) for lengths, arrays in found.items()}


def _is_kin(weight: np.ndarray, quantized: np.ndarray) -> bool:
    """Return whether a weight may be another one quantized, even badly: by the cosine between them.

    For normally distributed weights, signs alone have a cosine of 0.8 and the largest hundredth alone 0.3; weights that
    have nothing to do with each other have none, and a scale that is too large leaves only zeros.
    """
    was, now = weight.astype(np.float64).ravel(), quantized.astype(np.float64).ravel()
    norms = float(np.linalg.norm(was) * np.linalg.norm(now))
    return norms == 0.0 or float(was @ now) >= _LEAST_COSINE * norms


def _as_it_is(model: Model) -> Model:
    return model


def _relus_taken_over(original: Model, plain: Model, found: ModelDiff) -> frozenset[str]:
    """Return the values of a model without quantizers behind which a Relu of the original is missing."""
    values = set()
    for name in found.removed:
        node = original.graph.node(name)
        maker = original.graph.producer(node.inputs[0]) if node.op_type == "Relu" and not node.domain else None
        partner = found.pairs.get(maker.name) if maker is not None else None
        if maker is not None and partner is not None:
            values.add(plain.graph.node(partner).outputs[maker.outputs.index(node.inputs[0])])
    return frozenset(values)
