"""Normalizations and activations written out in elementary operators, whose squares and cubes leave a narrow range.

Inside one LayerNormalization an engine keeps the statistics in float32. Written out, every step is stored in the
format the engine computes in: the square of 256 is beyond float16, and the square of 10^-4 is nothing in it.
Sources: TensorRT issues 2781, 3692, 4061 and the fallback of ONNX Runtime's TensorRT provider (pull request 13639).
"""

import math
from collections.abc import Iterator, Mapping

from tensortriage.model.sdk import LintSubject, Node
from tensortriage.sdk import LintFinding

SLUGS: Mapping[str, str] = {
    "layernorm-decomposed": "A layer, instance or group normalization written out: its square overflows in fp16",
    "rmsnorm-decomposed": "An RMS normalization written out: its square overflows in fp16",
    "sum-of-squares": "A sum of squares (L2 norm): it overflows in fp16 long before its operands do",
    "gelu-cubic": "A GELU by its tanh approximation, written out: its cube overflows in fp16",
    "softmax-without-max": "A softmax written out without subtracting the maximum: Exp overflows",
}

_CUBIC = 0.044715  # Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415
_LAYERNORM, _RMSNORM = ("LayerNormalization", 17), ("RMSNormalization", 23)


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield normalizations and activations that are written out in elementary operators."""
    yield from _normalizations(subject)
    yield from _norms(subject)
    yield from _gelus(subject)
    yield from _softmaxes(subject)


def _normalizations(subject: LintSubject) -> Iterator[LintFinding]:
    seen: set[str] = set()
    for mean in subject.standard("ReduceMean"):
        square = _square(subject, mean.inputs[0])
        if square is None or square.name in seen or not _leads_to_root(subject, mean):
            continue
        seen.add(square.name)
        if _is_protected(subject, square):
            continue
        centred = subject.made_by(square.inputs[0], "Sub")
        is_layernorm = centred is not None and any(subject.made_by(v, "ReduceMean") for v in centred.inputs)
        slug, (op_type, since) = (
            ("layernorm-decomposed", _LAYERNORM) if is_layernorm else ("rmsnorm-decomposed", _RMSNORM)
        )
        what = "the distance from the mean" if is_layernorm else "a value"
        again = (
            f"export with opset {since} or higher, which has {op_type}" if subject.opset < since else f"use {op_type}"
        )
        yield subject.finding(
            slug,
            square,
            f"in fp16 the square of {what} is Inf beyond 256 and zero below 0.0002",
            f"{again}, or keep {square.op_type} '{square.name}' and the ops up to the root in fp32",
        )


def _norms(subject: LintSubject) -> Iterator[LintFinding]:
    for node in subject.graph.nodes:
        squared = node.op_type in ("ReduceL2", "ReduceSumSquare") and not node.domain
        if node.op_type == "ReduceSum" and not node.domain:
            squared = _square(subject, node.inputs[0]) is not None
        if squared and not {*node.outputs} & subject.graph.shape_like and not _is_protected(subject, node):
            yield subject.finding(
                "sum-of-squares",
                node,
                "in fp16 a sum of squares is Inf once the norm exceeds 256",
                f"keep {node.op_type} '{node.name}' in fp32, or scale its operand down first",
            )


def _gelus(subject: LintSubject) -> Iterator[LintFinding]:
    for tanh in subject.standard("Tanh"):
        scale = subject.made_by(tanh.inputs[0], "Mul")
        total = _operand_made_by(subject, scale, "Add")
        weighed = _operand_made_by(subject, total, "Mul")
        numbers = [subject.number(value) for value in weighed.inputs] if weighed is not None else []
        if weighed is not None and any(n is not None and math.isclose(n, _CUBIC, rel_tol=1e-3) for n in numbers):
            cube = _operand_made_by(subject, weighed, "Pow", "Mul") or weighed
            yield subject.finding(
                "gelu-cubic",
                cube,
                "in fp16 the cube in a GELU by tanh is Inf beyond 40",
                "export with opset 20 or higher, which has Gelu, or keep the cube in fp32",
            )


def _softmaxes(subject: LintSubject) -> Iterator[LintFinding]:
    for division in subject.standard("Div"):
        exp = subject.made_by(division.inputs[0], "Exp")
        total = subject.made_by(division.inputs[1], "ReduceSum")
        if exp is None or total is None or exp.outputs[0] not in total.inputs:
            continue
        shifted = subject.made_by(exp.inputs[0], "Sub")
        if shifted is None or subject.made_by(shifted.inputs[1], "ReduceMax") is None:
            yield subject.finding(
                "softmax-without-max",
                exp,
                "without the maximum subtracted Exp is Inf beyond 11 in fp16 and beyond 88 in fp32 and bf16",
                "use Softmax, or subtract the maximum before Exp",
            )


def _square(subject: LintSubject, value: str) -> Node | None:
    """Return the node that makes a value when that squares something: Pow by 2, or a product with itself."""
    node = subject.made_by(value, "Pow", "Mul")
    if node is None or len(node.inputs) < 2:
        return None
    if node.op_type == "Pow":
        return node if subject.number(node.inputs[1]) == 2 else None
    return node if node.inputs[0] == node.inputs[1] else None


def _leads_to_root(subject: LintSubject, node: Node, depth: int = 3) -> bool:
    """Whether a square root (or a power of -1/2) follows within a few nodes: else a mean square is only an error."""
    for user in subject.graph.consumers(node.outputs[0]):
        if user.op_type == "Sqrt" or (user.op_type == "Pow" and subject.number(user.inputs[1]) in (-0.5, 0.5)):
            return True
        if (
            depth
            and user.op_type in ("Add", "Cast", "Identity", "Max", "Clip")
            and _leads_to_root(subject, user, depth - 1)
        ):
            return True
    return False


def _is_protected(subject: LintSubject, node: Node) -> bool:
    """Whether a node's operand was cast to float32 for it, which keeps it safe in a typed model."""
    for value in node.inputs[:1]:
        producer = subject.graph.producer(value)
        while producer is not None and producer.op_type in ("Sub", "Mul"):
            producer = subject.graph.producer(producer.inputs[0])
        if producer is not None and producer.op_type == "Cast" and producer.attributes.get("to") == 1:
            source = subject.dtype(producer.inputs[0])
            return source is not None and source.is_float
    return False


def _operand_made_by(subject: LintSubject, node: Node | None, *op_types: str) -> Node | None:
    found = (subject.made_by(value, *op_types) for value in node.inputs) if node is not None else ()
    return next(filter(None, found), None)
