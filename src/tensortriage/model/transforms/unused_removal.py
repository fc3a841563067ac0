"""Remove parts without effect: nodes with unused results, unused initializers, functions that are never called.

Inputs and outputs of the model stay as they are, and so do the unused results of nodes that are needed. onnx_ir has a
pass for this too, but that one erases the names of unused optional results and drops attributes of BatchNormalization.
"""

import onnx_ir as ir

from tensortriage.model.ir.attributes import bodies
from tensortriage.model.model import Model
from tensortriage.model.transforms.rewrite_helpers import called_functions, prune_initializers, release_bodies


def clean(model: Model) -> Model:
    """Return the model without dead nodes, unused initializers and functions that nothing calls; bodies included."""
    clone = model.clone()
    clean_in_place(clone.ir)
    return Model.from_ir(clone.ir)


def clean_in_place(model: ir.Model) -> None:
    """Apply `clean` to an onnx_ir model that is not shared."""
    _drop_dead_nodes(model.graph)
    prune_initializers(model.graph)
    called = {function.identifier() for function in called_functions(model.functions, model.graph)}
    for identifier in [identifier for identifier in model.functions if identifier not in called]:
        del model.functions[identifier]


def _drop_dead_nodes(graph: ir.Graph) -> None:
    outputs = set(graph.outputs)
    for node in reversed(graph):
        if any(value.uses() or value in outputs for value in node.outputs):
            for body in bodies(node):
                _drop_dead_nodes(body)
                _drop_unused_initializers(body)
            continue
        release_bodies(node)
        graph.remove(node, safe=True)


def _drop_unused_initializers(body: ir.Graph) -> None:
    outputs = set(body.outputs)
    for name, value in list(body.initializers.items()):
        if not value.uses() and value not in outputs and not value.is_graph_input():
            del body.initializers[name]
