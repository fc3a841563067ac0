"""Why one element is NaN or infinite: the rule of arithmetic, with the operand values that it was applied to.

IEEE 754-2019, section 7.2, lists the operations that make a NaN of numbers (0 x Inf, Inf - Inf, 0 / 0, Inf / Inf, roots
of negative numbers, ...), sections 7.3 and 7.4 those that make an infinity (division by zero, overflow). The operators
of a network are made of these, so an element's own operands show the rule. It is an overflow only if the exact result,
or the sum of the magnitudes of its terms, is beyond the format: else no rule explains it, and the engine is wrong.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.compare.nonfinite.element import Element, RuleMatch, spoken
from tensortriage.compare.nonfinite.sum_rules import SUMS
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Node
from tensortriage.values.text import magnitude

UNEXPLAINED = "unexplained"


@frozen_dataclass
class Rule:
    """Why one element is not finite.

    Attributes:
        rule: The kind: ``0 * Inf``, ``Inf - Inf``, ``overflow``, ``log of a negative number``, ...; ``carried`` when an
            operand has it already; ``unexplained`` when the operands give no reason.
        index: Index of the element.
        operands: The values that decide it, by name.
        result: The element.
        sentence: All of it in words, without full stop.
    """

    rule: str
    index: tuple[int, ...]
    operands: Mapping[str, float]
    result: float
    sentence: str


def rule_of(
    node: Node,
    operands: Sequence[np.ndarray | None],
    result: np.ndarray,
    index: tuple[int, ...],
    *,
    largest: float = float(np.finfo(np.float32).max),
) -> Rule:
    """Return the rule by which an operator made a NaN or Inf of its operands.

    Args:
        node: The operator.
        operands: One array per input; None for omitted or unknown ones.
        result: The output, of any floating-point type.
        index: Index of the element that is not finite.
        largest: Largest finite number of the format that the engine computes in.
    """
    wide = [None if x is None or x.dtype.kind in "USO" else np.asarray(x).astype(np.float64) for x in operands]
    element = Element(node, wide, np.shape(result), tuple(map(int, index)), float(result[index]), largest)
    with np.errstate(all="ignore"):
        found = _read(element)
    limit = f", beyond the largest number {magnitude(largest, 6)}" if found.rule == "overflow" else ""
    subject = f"element {list(element.index)} is" if index else "the result is"
    sentence = f"{subject} {spoken(element.result)}: {found.words}{limit}"
    return Rule(found.rule, element.index, found.operands, element.result, sentence)


def _read(element: Element) -> RuleMatch:
    op = "" if element.node.domain else element.node.op_type
    found: RuleMatch | None = None
    if op in _UNARY:
        x = element.at(0)
        found = None if x is None else _carried(element, x) or _UNARY[op](x) or _grown(element, x)
    elif op in _BINARY:
        x, y = element.at(0), element.at(1)
        if x is not None and y is not None:
            found = _nan_among(element, x, y) or _BINARY[op](x, y, element.largest)
    elif op in _EXPONENTS:
        x = element.at(0)
        found = None if x is None else _carried(element, x) or _exponential(element, x)
    elif op in SUMS:
        found = SUMS[op](element)
    else:
        found = _moved(element)
    return found or RuleMatch(UNEXPLAINED, {}, f"its operands give no reason: {_ranges(element)}")


def _carried(element: Element, x: float) -> RuleMatch | None:
    if math.isfinite(x) or (math.isinf(x) and element.node.op_type in ("Sin", "Cos", "Tan")):
        return None
    return RuleMatch("carried", {element.name(0): x}, f"its operand '{element.name(0)}' is {spoken(x)} there")


def _nan_among(element: Element, x: float, y: float) -> RuleMatch | None:
    for position, value in enumerate((x, y)):
        if math.isnan(value):
            return RuleMatch(
                "carried", {element.name(position): value}, f"its operand '{element.name(position)}' is NaN there"
            )
    return None


def _unary(rule: str, words: str, when: Callable[[float], bool]) -> Callable[[float], RuleMatch | None]:
    """Return a reader of an operator that has one rule besides those of all; ``{x}`` in the words is the operand."""

    def read(x: float) -> RuleMatch | None:
        return RuleMatch(rule, {"x": x}, words.format(x=spoken(x))) if when(x) else None

    return read


def _log(x: float) -> RuleMatch | None:
    if x == 0.0:
        return RuleMatch("log of 0", {"x": x}, "log(0)")
    return RuleMatch("log of a negative number", {"x": x}, f"log({spoken(x)})") if x < 0.0 else None


def _grown(element: Element, x: float) -> RuleMatch | None:
    """Explain an element by a function that leaves the format for large arguments."""
    function = _GROWING.get(element.node.op_type)
    if function is None or not abs(float(function(np.float64(x)))) > element.largest:
        return None
    word = "the conversion of " + spoken(x) if element.node.op_type == "Cast" else f"{function.__name__}({spoken(x)})"
    return RuleMatch("overflow", {"x": x}, word)


_GROWING: Mapping[str, Callable[[np.float64], np.float64]] = {
    "Exp": np.exp, "Sinh": np.sinh, "Cosh": np.cosh, "Reciprocal": np.reciprocal, "Cast": np.float64,
}  # fmt: skip


def _exponential(element: Element, x: float) -> RuleMatch | None:
    """Explain an element by an exponential on the way to it that leaves the format, as the exact result does not."""
    power = x * _EXPONENTS[element.node.op_type]
    if not float(np.exp(np.float64(power))) > element.largest:
        return None
    return RuleMatch("overflow", {element.name(0): x}, f"exp({spoken(power)}), on the way to the result")


_EXPONENTS: Mapping[str, float] = {"Softplus": 1.0, "Mish": 1.0, "Sigmoid": -1.0, "Tanh": 2.0}
"""Operators whose formula in the ONNX specification has an exponential of the operand times this."""


def _never(_: float) -> None:
    """No rule but those of all operators."""


_UNARY: Mapping[str, Callable[[float], RuleMatch | None]] = {
    "Sqrt": _unary("root of a negative number", "sqrt({x})", lambda x: x < 0.0),
    "Log": _log,
    "Reciprocal": _unary("division by 0", "1 / {x}", lambda x: x == 0.0),
    "Acos": _unary("outside the domain", "acos({x}), defined from -1 to 1", lambda x: abs(x) > 1.0),
    "Asin": _unary("outside the domain", "asin({x}), defined from -1 to 1", lambda x: abs(x) > 1.0),
    "Acosh": _unary("outside the domain", "acosh({x}), defined from 1 on", lambda x: x < 1.0),
    "Atanh": _unary("outside the domain", "atanh({x}), finite between -1 and 1", lambda x: abs(x) >= 1.0),
    "Sin": _unary("outside the domain", "sin({x})", math.isinf),
    "Cos": _unary("outside the domain", "cos({x})", math.isinf),
    "Tan": _unary("outside the domain", "tan({x})", math.isinf),
    "Exp": _never,
    "Sinh": _never,
    "Cosh": _never,
    "Cast": _never,
}


def _add(x: float, y: float, largest: float, *, sign: str = "+") -> RuleMatch | None:
    known, words = {"x": x, "y": y}, f"{spoken(x)} {sign} {spoken(y)}"
    other = y if sign == "+" else -y
    if math.isinf(x) and math.isinf(other) and x != other:
        return RuleMatch("Inf - Inf", known, words)
    if math.isinf(x) or math.isinf(y):
        return RuleMatch("carried", known, words)
    return RuleMatch("overflow", known, words) if abs(x + other) > largest else None


def _sub(x: float, y: float, largest: float) -> RuleMatch | None:
    return _add(x, y, largest, sign="-")


def _mul(x: float, y: float, largest: float) -> RuleMatch | None:
    known, words = {"x": x, "y": y}, f"{spoken(x)} * {spoken(y)}"
    if math.isinf(x) or math.isinf(y):
        return RuleMatch("0 * Inf" if x == 0.0 or y == 0.0 else "carried", known, words)
    return RuleMatch("overflow", known, words) if abs(x * y) > largest else None


def _div(x: float, y: float, largest: float) -> RuleMatch | None:
    known, words = {"x": x, "y": y}, f"{spoken(x)} / {spoken(y)}"
    if y == 0.0:
        return RuleMatch("0 / 0" if x == 0.0 else "division by 0", known, words)
    if math.isinf(x):
        return RuleMatch("Inf / Inf" if math.isinf(y) else "carried", known, words)
    return RuleMatch("overflow", known, words) if abs(x / y) > largest else None


def _pow(x: float, y: float, largest: float) -> RuleMatch | None:
    known, words = {"x": x, "y": y}, f"{spoken(x)} ** {spoken(y)}"
    if x < 0.0 and math.isfinite(y) and y != int(y):
        return RuleMatch("root of a negative number", known, words)
    if x == 0.0 and y < 0.0:
        return RuleMatch("division by 0", known, words)
    if math.isinf(x) or math.isinf(y):
        return RuleMatch("carried", known, words)
    return RuleMatch("overflow", known, words) if abs(float(np.power(x, y))) > largest else None


_BINARY: Mapping[str, Callable[[float, float, float], RuleMatch | None]] = {
    "Add": _add, "Sub": _sub, "Mul": _mul, "Div": _div, "Pow": _pow,
    "Mod": lambda x, y, _: RuleMatch("division by 0", {"x": x, "y": y}, f"{spoken(x)} mod 0") if y == 0.0 else None,
}  # fmt: skip


def _moved(element: Element) -> RuleMatch | None:
    """Explain an element of an operator without a rule by a non-finite element of an operand."""
    for position, array in enumerate(element.operands):
        if array is not None and not np.isfinite(array).all():
            bad = array[~np.isfinite(array)].flat[0]
            name = element.name(position)
            return RuleMatch("carried", {name: float(bad)}, f"its operand '{name}' holds {spoken(float(bad))}")
    return None


def _ranges(element: Element) -> str:
    """Return the ranges of the operands, for a sentence."""
    words = [
        f"'{element.name(position)}' in [{magnitude(np.min(array))}, {magnitude(np.max(array))}]"
        for position, array in enumerate(element.operands)
        if array is not None and array.size
    ]
    return ", ".join(words) or "there is none"
