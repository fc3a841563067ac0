"""A model whose BatchNormalizations are folded into the Conv, ConvTranspose or Gemm before them, as quantizers do.

The rewriting is onnxscript's; around it names survive, constants may be nodes, and what normalizes by its own batch is
left alone.
"""

import onnx_ir as ir

from tensortriage.model.model import Model
from tensortriage.model.transforms.rewrite_helpers import is_standard, trains

_HIDDEN = "tensortriage.training"


def with_folded_norms(model: Model) -> Model:
    """Return the model with every BatchNormalization folded that can be; the folded node keeps its name.

    Args:
        model: The model; it is not changed.
    """
    # The package behind these is large; it is imported when it is needed.
    from onnx_ir.passes.common import LiftConstantsToInitializersPass
    from onnxscript.rewriter import RewriteRuleSet
    from onnxscript.rewriter.rules import common

    clone = model.clone().ir
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(clone)
    names = {
        norm.outputs[0].name: norm.inputs[0].producer().name  # type: ignore[union-attr] # asked for below
        for norm in clone.graph
        if is_standard(norm, "BatchNormalization") and norm.inputs[0] is not None and norm.inputs[0].producer()
    }
    training = [node for node in clone.graph if trains(node)]
    for node in training:
        node.domain = _HIDDEN
    rules = [
        common.fuse_batchnorm_into_conv_rule,
        common.fuse_batchnorm_into_conv_transpose_rule,
        common.fuse_batchnorm_into_gemm_rule,
    ]
    RewriteRuleSet(rules).apply_to_model(clone)
    for node in training:
        node.domain = ""
    for node in clone.graph:
        if (old := names.get(node.outputs[0].name)) and not is_standard(node, "BatchNormalization"):
            node.name = old
    clone.opset_imports.pop(_HIDDEN, None)
    return Model.from_ir(clone)


def has_foldable_norms(model: Model) -> bool:
    """Return whether a BatchNormalization of the main graph is the only reader of a node that can absorb it."""
    return any(
        is_standard(norm, "BatchNormalization")
        and not trains(norm)
        and norm.inputs[0] is not None
        and (before := norm.inputs[0].producer()) is not None
        and is_standard(before, "Conv", "ConvTranspose", "Gemm")
        and not norm.inputs[0].is_graph_output()
        and len(norm.inputs[0].uses()) == 1
        for norm in model.ir.graph
    )


def normalizations(model: ir.Model) -> int:
    """Return how many BatchNormalizations the main graph has."""
    return sum(is_standard(node, "BatchNormalization") for node in model.graph)
