"""Whether the weights of a model are 2:4 sparse, each with how far it is from it."""

import dataclasses
import math

from tensortriage.errors import ModelError
from tensortriage.model.inspect.sparsity import GROUP, dense_groups, sparse_candidates
from tensortriage.model.model import Model


@dataclasses.dataclass(frozen=True, slots=True)
class WeightSparsity:
    """One weight that could be 2:4 sparse.

    Attributes:
        weight: Name of the constant.
        node: The operator that sums over it.
        shape: Dimensions.
        axis: The axis that is summed over.
        groups: Number of groups of four along that axis.
        dense_groups: How many of them have more than two numbers that are not zero; 0 is 2:4 sparse.
    """

    weight: str
    node: str
    shape: tuple[int, ...]
    axis: int
    groups: int
    dense_groups: int


@dataclasses.dataclass(frozen=True, slots=True)
class SparsityReport:
    """The weights that could be 2:4 sparse, in the order of their operators.

    Attributes:
        model: The file.
        weights: One entry per weight.
    """

    model: str
    weights: tuple[WeightSparsity, ...]
    format: str = "tensortriage.sparsity/1"

    @property
    def is_sparse(self) -> bool:
        """Whether all of them are."""
        return all(weight.dense_groups == 0 for weight in self.weights)


def check_sparsity(model: Model) -> SparsityReport:
    """Read every weight that could be 2:4 sparse, one at a time.

    Raises:
        ModelError: When the model has none (slug ``no-sparse-candidates``).
    """
    found = []
    for candidate in sparse_candidates(model.graph):
        array = model.graph.weight(candidate.weight)
        groups = math.prod(array.shape) // GROUP
        dense = dense_groups(array, candidate.axis)
        found.append(WeightSparsity(candidate.weight, candidate.node, array.shape, candidate.axis, groups, dense))
    if not found:
        raise ModelError(
            f"{model.path or 'the model'} has no weight that could be 2:4 sparse",
            slug="no-sparse-candidates",
            cure="only float32, float16 and bfloat16 constants of Conv, Gemm and MatMul can be, if the length of the "
            "summed axis is a multiple of four",
        )
    return SparsityReport(str(model.path or ""), tuple(found))
