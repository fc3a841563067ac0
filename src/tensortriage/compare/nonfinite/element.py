"""One element of a result with the operands that it was computed from."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Node


@frozen_dataclass
class RuleMatch:
    """A rule that explains an element.

    Attributes:
        rule: Its kind.
        operands: The values that decide it, by name.
        words: The expression, for a sentence.
    """

    rule: str
    operands: Mapping[str, float]
    words: str


@frozen_dataclass
class Element:
    """One element of a node's result.

    Attributes:
        node: The operator.
        operands: One float64 array per input; None for omitted or unknown ones.
        shape: Shape of the result.
        index: Index of the element.
        result: The element.
        largest: Largest finite number of the format that the engine computes in.
    """

    node: Node
    operands: Sequence[np.ndarray | None]
    shape: tuple[int, ...]
    index: tuple[int, ...]
    result: float
    largest: float

    def name(self, position: int) -> str:
        """Return the name of an operand."""
        return self.node.inputs[position] if position < len(self.node.inputs) else ""

    def array(self, position: int) -> np.ndarray | None:
        """Return an operand; None when it is omitted or unknown."""
        return self.operands[position] if position < len(self.operands) else None

    def at(self, position: int) -> float | None:
        """Return the element of an operand that broadcasting pairs with this one; None when there is none."""
        array = self.array(position)
        if array is None or array.ndim > len(self.shape):
            return None
        try:
            return float(np.broadcast_to(array, self.shape)[self.index])
        except ValueError:
            return None

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is a whole number."""
        value = self.node.attributes.get(name, default)
        return value if isinstance(value, int) else default


def spoken(value: float) -> str:
    """Return a number for a sentence, six digits; NaN, Inf and -Inf by name."""
    if math.isnan(value):
        return "NaN"
    return ("Inf" if value > 0 else "-Inf") if math.isinf(value) else f"{value:,.6g}"
