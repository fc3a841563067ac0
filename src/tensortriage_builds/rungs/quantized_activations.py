"""Does the target quantize activations while it runs, though neither model nor options ask for it?

Engines replace products by weights of few bits with products of activations of few bits (dynamic quantization), which
is not part of models whose weights alone are compressed. Errors of one such product depend on the rounding of all
before it, so that they explain the output's error by their size, not by their direction: the proof is that the outputs
are right with this one setting off.
"""

from tensortriage.diagnose.sdk import (
    CURED_BY_SETTING,
    Conclusion,
    Culprit,
    DType,
    EngineError,
    EngineSpec,
    Evidence,
    Investigation,
    VerdictKind,
    rung,
)
from tensortriage.engines.sdk import Plan, QuantizesActivations
from tensortriage.envelope.sdk import resolve

QUESTION = "does the target quantize values that the model does not?"
_NAMED = 10
_FEW_BITS = frozenset(dtype.label for dtype in DType if dtype.bits <= 8 and not dtype.is_float)
"""Types of weights that are met with activations of few bits."""
_PRODUCTS = frozenset({"Conv", "FusedMatMul", "Gemm", "MatMul", "MatMulNBits"})


@rung(
    QUESTION,
    reads=("configuration",),
    cost="nothing new",
    ends=(VerdictKind.QUANTIZATION,),
    after="in which configuration does the target break?",
)
def activations_quantized(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Name the ops with compressed weights when run-time quantization alone makes the target wrong."""
    config = evidence.configuration
    engine = resolve(inv.question.target).engine
    if config is None or not isinstance(engine, QuantizesActivations):
        return None
    if engine.quantizes_activations(config.works.options) or not engine.quantizes_activations(config.broken.options):
        return None
    graph = inv.model.graph
    named = (name for name in _compressed(_plan(inv, config.broken)) if name in graph)
    products = [node for node in map(graph.node, named) if node.op_type in _PRODUCTS]
    inv.record.answered(
        QUESTION,
        f"yes: {config.works} is right; {len(products)} ops have weights of few bits" if products else
        f"yes: {config.works} is right",
        nodes=[node.name for node in products[:20]],
        works=str(config.works),
    )  # fmt: skip
    culprits = [
        Culprit(node.name, node.op_type, node.outputs[0], reason="its weights are of few bits")
        for node in products[:_NAMED]
    ]
    where = f" of {len(products)} ops with compressed weights" if products else ""
    return Conclusion(
        VerdictKind.QUANTIZATION,
        CURED_BY_SETTING,
        f"{inv.question.target} quantizes the activations{where} while it runs, which the model does not request; "
        f"{config.works} is right",
        culprits=culprits,
    )


def _plan(inv: Investigation, spec: EngineSpec) -> Plan | None:
    try:
        return inv.lab.plan(spec, inv.model)
    except EngineError:
        return None


def _compressed(plan: Plan | None) -> list[str]:
    """Return the nodes of the regions that a plan shows in a type of few bits."""
    regions = plan.regions if plan is not None else ()
    return [name for region in regions if region.precision in _FEW_BITS for name in region.nodes]
