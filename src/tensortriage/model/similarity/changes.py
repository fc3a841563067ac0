"""Possible differences between a node and its counterpart, as a closed set of kinds, each with its words."""

import enum

from tensortriage.frozen_dataclass import frozen_dataclass


class ChangeKind(enum.Enum):
    """Kind of difference of a node; the value is the word in files."""

    ADDED = "added"
    REMOVED = "removed"
    OP_TYPE = "op-type"
    ATTRIBUTE = "attribute"
    TRAINING_MODE = "training-mode"
    """Left in training mode, where the reference's is not."""
    EPSILON = "epsilon"
    """Epsilon that a normalization adds to a variance or a norm."""
    RESAMPLING = "resampling"
    """Interpolation of Resize or GridSample."""
    PADDING = "padding"
    STRIDES = "strides"
    """Geometry of a window: strides, dilations, its size."""
    WEIGHT = "weight"
    """Other numbers, in no way that has a kind of its own."""
    WEIGHT_ROUNDED = "weight-rounded"
    """Equal numbers but for rounding to their type: no fault."""
    WEIGHT_TRANSPOSED = "weight-transposed"
    WEIGHT_REORDERED = "weight-reordered"
    """The same numbers in other places: rolled, reversed, slices in another order."""
    WEIGHT_COARSENED = "weight-coarsened"
    """Rounded more coarsely than the type needs, cut off, or zeroed in part."""
    WEIGHT_LIMITED = "weight-limited"
    """Cut at the largest, or raised to the smallest number that a converter lets pass."""
    WEIGHT_OF_ANOTHER_NODE = "weight-of-another-node"
    WEIGHT_RESCALED = "weight-rescaled"
    WEIGHT_ADAPTED = "weight-adapted"
    """Moved by a matrix of low rank."""
    WIRING = "wiring"

    @property
    def is_named_cause(self) -> bool:
        """Whether the change explains a fault, instead of only showing a difference."""
        return self in _CAUSES


_CAUSES = frozenset(
    {
        ChangeKind.TRAINING_MODE, ChangeKind.EPSILON, ChangeKind.RESAMPLING, ChangeKind.PADDING, ChangeKind.STRIDES,
        ChangeKind.WEIGHT_TRANSPOSED, ChangeKind.WEIGHT_OF_ANOTHER_NODE, ChangeKind.WEIGHT_RESCALED,
        ChangeKind.WEIGHT_REORDERED, ChangeKind.WEIGHT_COARSENED, ChangeKind.WEIGHT_LIMITED, ChangeKind.WEIGHT_ADAPTED,
    }
)  # fmt: skip


@frozen_dataclass
class NodeDifference:
    """One difference between two nodes that correspond.

    Attributes:
        kind: What is different.
        reason: The difference as the rest of a sentence that starts with the node.
    """

    kind: ChangeKind
    reason: str


@frozen_dataclass
class NodeChange:
    """One difference at one node.

    Attributes:
        kind: What is different.
        node: Name in the target; of a removed node, in the reference.
        reference_node: Name in the reference; empty for an added node.
        op_type: Operator in the target; of a removed node, in the reference.
        reason: The difference as the rest of a sentence that starts with the node.
    """

    kind: ChangeKind
    node: str
    reference_node: str
    op_type: str
    reason: str
