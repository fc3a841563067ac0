"""Nodes that were left in training mode: they compute something else than the network that was trained.

BatchNormalization then normalizes by the batch it is given instead of by the statistics it has learned, and Dropout
zeroes elements at random. Both run without complaint on most engines, and two engines that agree on a batch prove
nothing.
"""

from collections.abc import Iterator, Mapping

from tensortriage.model.ir.graph import Node
from tensortriage.model.lint.finding import Aims, LintFinding, Severity
from tensortriage.model.lint.subject import LintSubject, subjects
from tensortriage.model.model import Model

SLUGS: Mapping[str, str] = {
    "batchnorm-in-training": "BatchNormalization in training mode: it normalizes by the batch that it is given",
    "dropout-in-training": "Dropout that is left on: it zeroes elements at random",
}

_EXPORT = "call eval() on the network before it is exported"


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield the nodes of a graph that are in training mode."""
    for node in subject.standard("BatchNormalization"):
        if normalizes_by_batch(node, subject.opset):
            yield subject.finding(
                "batchnorm-in-training",
                node,
                "it is in training mode: it normalizes by the mean and variance of the batch it is given, not by those "
                "that were learned",
                f"{_EXPORT}, or set training_mode to 0 and keep its first output only",
                severity=Severity.PROBLEM,
            )
    for node in subject.standard("Dropout"):
        if _drops(subject, node):
            yield subject.finding(
                "dropout-in-training",
                node,
                "it is left on: it zeroes elements at random, other ones in every run",
                f"{_EXPORT}, or omit its input training_mode",
                severity=Severity.PROBLEM,
            )


def in_training(model: Model) -> tuple[LintFinding, ...]:
    """Return the nodes of a model, its bodies and functions included, that are in training mode."""
    return tuple(finding for subject in subjects(model, Aims()) for finding in check(subject))


def normalizes_by_batch(node: Node, opset: int) -> bool:
    """Return whether a BatchNormalization uses the statistics of its batch, by the rules of its opset.

    From opset 14 on an attribute says so, from 7 on the number of outputs, before that ``is_test``, which is 0 by
    default (ONNX Changelog, BatchNormalization-1 to -15).
    """
    if opset >= 14:
        return node.attributes.get("training_mode", 0) == 1
    if opset >= 7:
        return sum(map(bool, node.outputs)) > 1
    return node.attributes.get("is_test", 0) == 0


def _drops(subject: LintSubject, node: Node) -> bool:
    """Return whether a Dropout zeroes anything: by an operand from opset 12 on, by ``is_test`` before 7."""
    if subject.opset < 7:
        return node.attributes.get("is_test", 0) == 0 and node.attributes.get("ratio", 0.5) != 0.0
    if subject.opset < 12 or len(node.inputs) < 3 or not subject.number(node.inputs[2]):
        return False
    return not node.inputs[1] or subject.number(node.inputs[1]) != 0.0
