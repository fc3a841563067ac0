"""A model that is like another one in all but its graph."""

from collections.abc import Iterable
from typing import Any

import onnx_ir as ir

_FACTS = ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string")


def around_graph(graph: Any, model: ir.Model, functions: Iterable[ir.Function], **more: Any) -> ir.Model:
    """Return a model of a graph, or a view of one.

    Args:
        graph: The graph.
        model: The model with the facts.
        functions: The functions of the new one.
        more: Further arguments of `onnx_ir.Model`.
    """
    facts = {name: getattr(model, name) for name in _FACTS}
    return ir.Model(graph, functions=tuple(functions), metadata_props=dict(model.metadata_props), **facts, **more)
