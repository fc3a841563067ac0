"""Decisions of a model: ops that turn scores into indices.

ArgMax, TopK and NonMaxSuppression pass no error on in proportion: two scores closer than their rounding may change
places, and everything picked by the indices (boxes, classes, tokens, experts) changes with them as a whole.
"""

import enum
from collections.abc import Collection, Mapping

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node

SAME_ORDER = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Ops whose result holds the elements of their first operand in the same order."""


class DecisionKind(enum.Enum):
    """Kind of a decision; the value is its name in words."""

    EXTREME = "index of the extreme"
    TOP_K = "top-k"
    BOXES = "non-maximum suppression"

    @property
    def unit(self) -> str:
        """Plural of the counted entries of the decision."""
        return {"EXTREME": "indices", "TOP_K": "ranks", "BOXES": "boxes"}[self.name]


@frozen_dataclass
class Decision:
    """An op that picks by scores.

    Attributes:
        kind: How it picks.
        node: Name of the node.
        value: Name of the indices.
        scores: The value that decides.
        axis: Along which ArgMax, ArgMin and TopK look.
        largest: Whether the largest scores win.
        ordered: Whether the indices of a TopK are in the order of their scores.
        boxes: The boxes of a NonMaxSuppression.
        corners: Whether they are given by two corners, else by centre and size.
        limits: Of a NonMaxSuppression: the values that hold the most boxes per class, the threshold of the overlap and
            that of the scores; empty names where the defaults hold.
    """

    kind: DecisionKind
    node: str
    value: str
    scores: str
    axis: int = -1
    largest: bool = True
    ordered: bool = True
    boxes: str = ""
    corners: bool = True
    limits: tuple[str, str, str] = ("", "", "")

    @property
    def operands(self) -> tuple[str, ...]:
        """The floating-point values that decide."""
        return (self.scores, self.boxes) if self.boxes else (self.scores,)


def decisions_behind(graph: Graph, values: Collection[str]) -> tuple[Decision, ...]:
    """Return the decisions that values depend on, in topological order.

    Unused indices of an ArgMax or a TopK decide nothing. Bodies of If, Loop and Scan are not
    searched.
    """
    wanted = set(values)
    found = (_decision(node) for node in graph.ancestors(values) if not node.domain)
    return tuple(each for each in found if each and (each.value in wanted or graph.consumers(each.value)))


def decided_values(graph: Graph, decision: Decision) -> frozenset[str]:
    """Return the values that depend on a decision, its own among them."""
    own = graph.node(decision.node).outputs
    return frozenset(name for name in (*own, *(v for n in graph.descendants(own) for v in n.outputs)) if name)


def shown_as(graph: Graph, decision: Decision, values: Collection[str]) -> str:
    """Return one of the values that holds exactly the indices of a decision, perhaps reshaped or cast; else empty."""
    for value in values:
        at = value
        while at != decision.value:
            node = graph.producer(at)
            if node is None or node.domain or node.op_type not in SAME_ORDER:
                break
            at = node.inputs[0]
        else:
            return value
    return ""


def _decision(node: Node) -> Decision | None:
    attributes = node.attributes
    if node.op_type in ("ArgMax", "ArgMin"):
        return Decision(
            DecisionKind.EXTREME,
            node.name,
            node.outputs[0],
            node.inputs[0],
            axis=_number(attributes, "axis", 0),
            largest=node.op_type == "ArgMax",
        )
    if node.op_type == "TopK" and len(node.outputs) > 1 and node.outputs[1]:
        return Decision(
            DecisionKind.TOP_K,
            node.name,
            node.outputs[1],
            node.inputs[0],
            axis=_number(attributes, "axis", -1),
            largest=_number(attributes, "largest", 1) == 1,
            ordered=_number(attributes, "sorted", 1) == 1,
        )
    if node.op_type == "NonMaxSuppression":
        limits = (*node.inputs[2:5], "", "", "")
        return Decision(
            DecisionKind.BOXES,
            node.name,
            node.outputs[0],
            node.inputs[1],
            boxes=node.inputs[0],
            corners=_number(attributes, "center_point_box", 0) == 0,
            limits=(limits[0], limits[1], limits[2]),
        )
    return None


def _number(attributes: Mapping[str, object], name: str, default: int) -> int:
    value = attributes.get(name, default)
    return value if isinstance(value, int) else default
