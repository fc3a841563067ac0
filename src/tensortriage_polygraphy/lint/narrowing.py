"""Integers and doubles that an engine computes in a narrower type than the model declares.

TensorRT before 10 and OpenVINO compute int64 in int32, and most engines float64 in float32. Larger values are cut off
or wrap around, without a word.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.model.sdk import LintSubject
from tensortriage.sdk import DType, LintFinding, Severity, magnitude

SLUGS: Mapping[str, str] = {
    "int64-beyond-int32": "An int64 constant beyond int32, the type that many engines compute in",
    "float64-computed": "Nodes that compute in float64, which engines narrow to float32 or refuse",
    "float64-beyond-float32": "A float64 constant that float32 cannot hold",
}

_ENDS = {"Slice": (1, 2), "Clip": (1, 2)}
"""Operands whose extreme values only mean "to the end"; engines clamp them."""


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield the constants that do not survive narrowing, and one node that computes in float64."""
    for name, spec in subject.graph.constants.items():
        if spec.dtype in (DType.INT64, DType.UINT64, DType.UINT32):
            yield from _integer(subject, name)
        elif spec.dtype is DType.DOUBLE:
            yield from _double(subject, name)
    yield from _computed_in_double(subject)


def _integer(subject: LintSubject, name: str) -> Iterator[LintFinding]:
    array = subject.constant(name)
    limits = np.iinfo(np.int32)
    if array is None or not array.size or (int(array.max()) <= limits.max and int(array.min()) >= limits.min):
        return
    for user in subject.graph.consumers(name):
        ends = _ENDS.get(user.op_type, ()) if not user.domain else ()
        positions = [position for position, value in enumerate(user.inputs) if value == name]
        if positions and all(position in ends for position in positions):
            continue
        worst = max(int(array.max()), int(array.min()), key=abs)
        yield subject.finding(
            "int64-beyond-int32",
            user,
            f"{worst} is beyond int32 ({limits.max}): an engine that narrows int64 cuts it off or wraps it around",
            "use a number within int32, e.g. 2147483647 for no limit",
            severity=Severity.PROBLEM if subject.aims.narrows_integers else Severity.HINT,
            value=name,
        )
        return


def _double(subject: LintSubject, name: str) -> Iterator[LintFinding]:
    array, users = subject.constant(name), subject.graph.consumers(name)
    if array is None or not users:
        return
    with np.errstate(over="ignore", under="ignore"):
        narrow = array.astype(np.float32)
    lost = (np.isinf(narrow) & np.isfinite(array)) | ((narrow == 0) & (array != 0))
    if lost.any():
        yield subject.finding(
            "float64-beyond-float32",
            users[0],
            f"{magnitude(array[lost].ravel()[0])} is {'Inf' if np.isinf(narrow).any() else 'zero'} in float32",
            "use a number within float32",
            severity=Severity.PROBLEM if subject.aims.narrows_doubles else Severity.HINT,
            value=name,
        )


def _computed_in_double(subject: LintSubject) -> Iterator[LintFinding]:
    nodes = [
        node
        for node in subject.graph.nodes
        if node.op_type not in ("Cast", "Constant", "Identity")
        and any(subject.dtype(value) is DType.DOUBLE for value in node.outputs if value)
    ]
    if nodes:
        yield subject.finding(
            "float64-computed",
            nodes[0],
            f"{len(nodes)} nodes, this one first, compute in float64: engines narrow that to float32 or refuse it",
            "cast to float32 where float64 is not needed; it often comes from a numpy scalar in the network's code",
        )
