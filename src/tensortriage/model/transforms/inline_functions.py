"""Put the bodies of model-local functions in place of their calls."""

import onnx_ir as ir
from onnx_ir.passes import PassError, PreconditionError

from tensortriage.errors import ModelError
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model


def calls(model: Model) -> tuple[Node, ...]:
    """Return the nodes of the main graph that call a function of the model."""
    functions = {(function.domain, function.name) for function in model.ir.functions.values()}
    return tuple(node for node in model.graph.nodes if (node.domain, node.op_type) in functions)


def without_functions(model: Model) -> Model:
    """Return the model with the nodes of its functions in place of their calls; errors as `inline_functions`."""
    clone = model.clone()
    inline_functions(clone.ir)
    return Model.from_ir(clone.ir)


def inline_functions(model: ir.Model) -> None:
    """Inline every function, in place; the metadata of a call go to every node that takes its place.

    Raises:
        ModelError: When a function calls itself, or onnx_ir cannot inline it (slug ``function-not-inlined``).
    """
    from onnx_ir.passes.common import InlinePass  # with all passes of onnx_ir; most commands need none

    try:
        InlinePass()(model)
    except (ValueError, RuntimeError, PassError, PreconditionError) as error:
        reason = error.__cause__ or error
        raise ModelError(
            f"a model-local function cannot be inlined: {reason}",
            slug="function-not-inlined",
            cure="export the model without functions",
        ) from error
