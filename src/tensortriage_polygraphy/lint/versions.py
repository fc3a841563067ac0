"""Operators whose meaning depends on the opset, and which converters and engines interpret differently."""

from collections.abc import Iterator, Mapping

from tensortriage.model.sdk import LintSubject, Node
from tensortriage.sdk import LintFinding, Severity

SLUGS: Mapping[str, str] = {
    "layernorm-before-opset-17": "LayerNormalization at an opset that does not have it: only ONNX Runtime accepts that",
    "softmax-flattened": "Softmax of an opset below 13 over several axes at once: engines take one axis of them",
    "softmax-inner-axis": "Softmax over many numbers of an axis that is not the last: kernels differ, and may be slow",
}

WIDE = 1024
"""Least size of a softmax over an inner axis that is reported."""

_SOFTMAXES = ("Softmax", "LogSoftmax", "Hardmax")


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield operators that the opset makes doubtful."""
    for node in subject.standard("LayerNormalization"):
        if subject.opset < 17:
            yield subject.finding(
                "layernorm-before-opset-17",
                node,
                f"opset {subject.opset} has no LayerNormalization; engines other than ONNX Runtime refuse it",
                "export the model with opset 17 or higher",
                severity=Severity.PROBLEM,
            )
    for node in subject.standard(*_SOFTMAXES):
        shape = subject.shape(node.inputs[0]) or subject.shape(node.outputs[0])
        if shape is not None:
            yield from _softmax(subject, node, shape)


def _softmax(subject: LintSubject, node: Node, shape: tuple[int | str | None, ...]) -> Iterator[LintFinding]:
    rank = len(shape)
    given = node.attributes.get("axis", 1 if subject.opset < 13 else -1)
    axis = given + rank if isinstance(given, int) and given < 0 else given
    if not isinstance(axis, int) or not 0 <= axis < rank:
        return
    behind = shape[axis + 1 :]
    if all(dim == 1 for dim in behind):
        return
    if subject.opset < 13:
        yield subject.finding(
            "softmax-flattened",
            node,
            f"opset {subject.opset} normalizes over all axes from {axis} on, {list(shape[axis:])}; converters and "
            "engines that read it as opset 13 does normalize over one",
            "export the model with opset 13 or higher",
        )
    elif isinstance(count := shape[axis], int) and count >= WIDE:
        yield subject.finding(
            "softmax-inner-axis",
            node,
            f"it sums {count} numbers of axis {axis} of {list(shape)}, which lie apart in memory",
            "transpose first, so that the axis is the last; compare this node alone when its numbers look wrong",
        )
