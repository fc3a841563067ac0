"""Constants that a narrow format cannot represent: epsilons that vanish, masks that become infinite, and NaN.

An epsilon guards a division or a root; rounded to zero it guards nothing. A mask of -1e9 becomes -Inf in float16, which
is harmless where it is added before a softmax that sees another number as well, and NaN where it is multiplied by zero.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.model.sdk import LintSubject, Node, blocks
from tensortriage.sdk import LintFinding, Precision, Severity, magnitude

SLUGS: Mapping[str, str] = {
    "epsilon-vanishes": "An epsilon that a format rounds to zero: the guarded division is by zero",
    "mask-beyond-range": "A mask constant beyond the range of a format: it becomes infinite, and NaN times zero",
    "infinite-factor": "A factor that is infinite: NaN times zero",
    "constant-is-nan": "A constant that holds NaN",
}

_HAVE_SCALES = ("QuantizeLinear", "DequantizeLinear")  # the module quantization looks at these
_MOST_NUMBERS = 3
_SAMPLE = 4096
_GUARDED = frozenset({"Sqrt", "Div", "Log", "Reciprocal", "Pow"})
_THROUGH = frozenset({"Cast", "Identity", "Max", "Clip", "Add", "Sqrt", "ReduceSum"})
_EPSILONS = {"Add": (0, 1), "Max": (0, 1), "Clip": (1,)}
_MASKING = {"Add": (0, 1), "Sub": (0, 1), "Mul": (0, 1), "Div": (0,), "Where": (1, 2), "Max": (0, 1), "Min": (0, 1)}


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield the constants that formats cannot hold."""
    for node in subject.graph.nodes:
        if not node.domain:
            yield from _epsilon(subject, node)
            yield from _mask(subject, node)
    yield from _not_a_number(subject)


def _epsilon(subject: LintSubject, node: Node) -> Iterator[LintFinding]:
    for position in _EPSILONS.get(node.op_type, ()):
        value = node.inputs[position] if position < len(node.inputs) else ""
        epsilon = subject.number(value) if value else None
        if epsilon is None or epsilon <= 0 or not _guards(subject, node):
            continue
        for precision in subject.aims.looked_at:
            if _rounded(epsilon, precision) == 0:
                smallest = float(precision.dtype.finfo.smallest_subnormal)
                yield subject.finding(
                    "epsilon-vanishes",
                    node,
                    f"{magnitude(epsilon)} is zero in {precision.value}, whose smallest number is "
                    f"{magnitude(smallest, 2)}: the division that it guards can be by zero",
                    f"raise it to 1e-5 or so, or keep '{node.name}' and the division that it guards in fp32",
                    severity=subject.aims.severity_in(precision),
                    value=value,
                )
                break


def _guards(subject: LintSubject, node: Node, depth: int = 3) -> bool:
    """Whether the result becomes a divisor, or the operand of a root or logarithm, within a few nodes."""
    for user in subject.graph.consumers(node.outputs[0]):
        if user.op_type in _GUARDED and (user.op_type != "Div" or user.inputs[1] == node.outputs[0]):
            return user.op_type != "Pow" or (subject.number(user.inputs[1]) or 0.0) < 1
        if depth and user.op_type in _THROUGH and not user.domain and _guards(subject, user, depth - 1):
            return True
    return False


def _mask(subject: LintSubject, node: Node) -> Iterator[LintFinding]:
    for position in _MASKING.get(node.op_type, ()):
        value = node.inputs[position] if position < len(node.inputs) else ""
        largest = mask_number(subject, value) if value else None
        if largest is None:
            continue
        if math.isinf(largest) and node.op_type == "Mul":
            yield subject.finding(
                "infinite-factor",
                node,
                "Inf times zero is NaN",
                "use a large finite number, and one that the format holds",
                severity=Severity.PROBLEM,
                value=value,
            )
        if math.isfinite(largest):
            yield from _beyond(subject, node, value, largest)


def is_mask(subject: LintSubject, value: str) -> bool:
    """Whether a constant hides elements rather than weighs them: it holds few numbers, and is added or the like."""
    users = subject.graph.consumers(value)
    return bool(users) and users[0].op_type in _MASKING and mask_number(subject, value) is not None


def mask_number(subject: LintSubject, value: str) -> float | None:
    """Return the number of largest magnitude of a floating-point constant that holds at most three; None for others."""
    array = subject.few(value)
    array = subject.constant(value) if array is None else array
    if array is None or not array.size or array.dtype.kind in "OSUbiuc":
        return None
    if array.size > _SAMPLE and np.unique(array.reshape(-1)[:_SAMPLE].astype(np.float32)).size > _MOST_NUMBERS:
        return None
    numbers = np.unique(array.astype(np.float64, copy=False))
    if numbers.size > _MOST_NUMBERS or np.isnan(numbers).any():
        return None
    return float(numbers[np.abs(numbers).argmax()])


def _beyond(subject: LintSubject, node: Node, value: str, number: float) -> Iterator[LintFinding]:
    for precision in subject.aims.looked_at:
        if math.isfinite(_rounded(number, precision)):
            continue
        multiplied = node.op_type == "Mul"
        sign = "-" if number < 0 else ""
        effect = "times zero it is NaN" if multiplied else "a softmax over nothing else is NaN"
        yield subject.finding(
            "mask-beyond-range",
            node,
            f"{magnitude(number)} is {sign}Inf in {precision.value}, which ends at "
            f"{magnitude(float(precision.dtype.finfo.max), 5)}; {effect}",
            "use -1e4 for a mask" if number < 0 else f"keep '{node.name}' in fp32, or scale the constant down",
            severity=subject.aims.severity_in(precision) if multiplied else Severity.HINT,
            value=value,
        )
        break


def _not_a_number(subject: LintSubject) -> Iterator[LintFinding]:
    for name, spec in subject.graph.constants.items():
        users = subject.graph.consumers(name)
        if spec.dtype is None or not spec.dtype.is_float or not users or users[0].op_type in _HAVE_SCALES:
            continue
        array = subject.constant(name)
        if array is not None and any(np.isnan(np.float64(block.max())) for block in blocks(array)):  # max passes NaN on
            yield subject.finding(
                "constant-is-nan",
                users[0],
                "the constant holds NaN, which spreads to every result computed from it",
                "export the model again from healthy weights",
                severity=Severity.PROBLEM,
                value=name,
            )


def _rounded(number: float, precision: Precision) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(number).astype(precision.dtype.numpy).astype(np.float32))
