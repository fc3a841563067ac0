"""Operators as ONNX defines them: their parameters, and the types of results that follow from those of operands."""

import functools
from collections.abc import Mapping, Sequence

import onnx
import onnx_ir as ir
from onnx_ir.schemas import OpSignature, Parameter


@functools.cache
def signature(domain: str, op_type: str, version: int) -> OpSignature | None:
    """Return the schema of an operator at an opset version, or None when ONNX does not define it."""
    domain = "" if domain == "ai.onnx" else domain
    if not onnx.defs.has(op_type, domain):
        return None
    try:
        return OpSignature.from_op_schema(onnx.defs.get_schema(op_type, version, domain))
    except (onnx.defs.SchemaError, KeyError, ValueError):  # newer than the model's opset, or of exotic types
        return None


def parameter(parameters: Sequence[Parameter], index: int) -> Parameter | None:
    """Return the formal parameter of an input or output position, the last one repeating when it is variadic."""
    if index < len(parameters):
        return parameters[index]
    return parameters[-1] if parameters and parameters[-1].variadic else None


def schema_results(
    node: ir.Node, fed: Sequence[ir.TypeProtocol | None], opsets: Mapping[str, int]
) -> list[ir.TypeProtocol | None]:
    """Return the types of a node's outputs that the schema of its operator ties to its inputs, or fixes.

    Args:
        node: The node.
        fed: The types of its inputs; None for one that is omitted or unknown.
        opsets: The version of each domain that the model imports.
    """
    schema = signature(node.domain, node.op_type, node.version or opsets.get(node.domain, opsets.get("", 1)))
    if schema is None:
        return []
    bound: dict[str, ir.TypeProtocol] = {}
    for index, kind in enumerate(fed):
        formal = parameter(schema.inputs, index)
        if kind is not None and formal is not None and formal.homogeneous:
            bound.setdefault(formal.type_constraint.name, kind)
    results: list[ir.TypeProtocol | None] = []
    for index in range(len(node.outputs)):
        formal = parameter(schema.outputs, index)
        allowed = formal.type_constraint.allowed_types if formal is not None else frozenset()
        only = next(iter(allowed)) if len(allowed) == 1 else None
        results.append(only or (bound.get(formal.type_constraint.name) if formal is not None else None))
    return results
