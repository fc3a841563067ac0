"""Whole numbers that are computed in floating point: shapes, positions, sizes.

float16 holds whole numbers up to 2048, bfloat16 up to 256. A shape that passes through either comes out rounded, and a
position embedding computed from rounded positions repeats itself. Sources: TensorRT issue 4718 (Slice bounds in bf16
become 0), Model-Optimizer pull request 1628 (Resize scales must stay float32).
"""

from collections.abc import Iterator, Mapping

from tensortriage.model.sdk import LintSubject, Node
from tensortriage.sdk import DType, LintFinding, Severity

SLUGS: Mapping[str, str] = {
    "shape-in-float": "A shape computed in floating point: rounded in fp16 beyond 2048, in bf16 beyond 256",
    "resize-scales-computed": "Resize by scales that are computed: rounded scales give other sizes",
    "positions-in-float": "Positions turned into floating point for sines and cosines: rounded in fp16 and bf16",
}

_HALF = {DType.FLOAT16: 2048, DType.BFLOAT16: 256}
_NEAR = 6


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield whole numbers that are computed in floating point."""
    for node in subject.standard("Cast"):
        yield from _shape(subject, node)
    for node in subject.standard("Resize"):
        scales = node.inputs[2] if len(node.inputs) > 2 else ""
        if scales and subject.few(scales) is None:
            yield subject.finding(
                "resize-scales-computed",
                node,
                "its scales are computed: rounded to a narrow format they give another size, or another grid",
                "give Resize its sizes instead, as integers, or fold the constants",
                value=scales,
            )
    yield from _positions(subject)


def _shape(subject: LintSubject, cast: Node) -> Iterator[LintFinding]:
    """Look at a Cast from floating point to integer whose result decides a shape."""
    source, made = subject.dtype(cast.inputs[0]), subject.dtype(cast.outputs[0])
    if made is None or not made.is_integer or cast.outputs[0] not in subject.graph.shape_like:
        return
    if source is None or not source.is_float or cast.inputs[0] in subject.graph.constants:
        return
    exact = _HALF.get(source)
    yield subject.finding(
        "shape-in-float",
        cast,
        f"a shape is computed in {source.label}"
        + (
            ", which rounds in fp16 beyond 2048 and in bf16 beyond 256" if exact is None else f", exact only to {exact}"
        ),
        "compute shapes in integers: // instead of / in the network's code; or keep these nodes in fp32",
        severity=Severity.HINT if exact is None else Severity.PROBLEM,
        value=cast.inputs[0],
    )


def _positions(subject: LintSubject) -> Iterator[LintFinding]:
    """Find the Casts from integer behind Sin and Cos."""
    seen: set[str] = set()
    for node in subject.standard("Sin", "Cos"):
        cast = _integer_source(subject, node)
        if cast is not None and cast.name not in seen:
            seen.add(cast.name)
            narrow = subject.dtype(cast.outputs[0]) in _HALF
            yield subject.finding(
                "positions-in-float",
                cast,
                "positions become floating point here and end in a sine: fp16 holds them up to 2048, bf16 up to 256",
                f"keep '{cast.name}' and the ops up to '{node.name}' in fp32",
                severity=Severity.PROBLEM if narrow else Severity.HINT,
            )


def _integer_source(subject: LintSubject, node: Node) -> Node | None:
    pending, seen = [(node, 0)], {node.name}
    while pending:
        current, distance = pending.pop(0)
        for value in current.inputs:
            before = subject.graph.producer(value)
            if before is None or before.name in seen or distance >= _NEAR:
                continue
            seen.add(before.name)
            dtype = subject.dtype(before.inputs[0]) if before.op_type == "Cast" else None
            if dtype is not None and dtype.is_integer and before.inputs[0] not in subject.graph.constants:
                return before
            pending.append((before, distance + 1))
    return None
