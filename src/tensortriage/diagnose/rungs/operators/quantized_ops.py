"""Is the faulty op one of quantization? Then the verdict names its misreading of scale and zero point."""

import dataclasses

import numpy as np

from tensortriage.compare.quantization.misreadings import misreading
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.suggested_commands import reduce_command, run_command
from tensortriage.diagnose.rungs.operators.blame import Blame
from tensortriage.diagnose.state.confidence import LEAST_BLAMED, blamed
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.model.quantization.qdq import QUANTIZING_OPS
from tensortriage.values.text import percent


def of_a_quantizer(inv: Investigation, evidence: Evidence, fault: Blame) -> Conclusion | None:
    """Return the verdict when the most influential op that is wrong on golden inputs works on quantized numbers.

    The golden values come from a reference that computes these operators as ONNX defines them, integer products with
    exact int32 sums included, so a difference is the engine's reading of scale, zero point, rounding or saturation.
    """
    first = fault.culprits[0]
    if first.op_type not in QUANTIZING_OPS:
        return None
    culprits = tuple(with_misreading(inv, evidence, c) if c.op_type in QUANTIZING_OPS else c for c in fault.culprits)
    first = culprits[0]
    return Conclusion(
        VerdictKind.QUANTIZATION,
        blamed(max(fault.explained, LEAST_BLAMED)),
        f"{first.op_type} '{first.node}' is not computed as ONNX defines it on {inv.question.target}: {first.reason}; "
        f"{'it explains' if fault.named == 1 else f'{fault.named} such ops explain'} {percent(fault.explained)} of "
        "the output error",
        culprits=culprits,
        next=[reduce_command(inv.question), run_command(inv.question, "--onnx-outputs", first.value)],
    )


def with_misreading(inv: Investigation, evidence: Evidence, culprit: Culprit) -> Culprit:
    """Return a culprit whose reason names the misreading that gives its result, if there is one."""
    local, graph, golden = evidence.local, inv.model.graph, inv.golden.of(evidence.feed)
    if local is None or culprit.value not in local.arrays:
        return culprit
    node = graph.node(culprit.node)
    known = {name: graph.weight(name) for name in node.inputs if name in graph.constants}
    known |= {name: np.asarray(golden[name]) for name in node.inputs if name in golden}
    operands = [known.get(name, evidence.feed.tensors.get(name)) for name in node.inputs]
    words = misreading(node, operands, np.asarray(local.arrays[culprit.value]))
    return dataclasses.replace(culprit, reason=f"{words}; {culprit.reason}") if words else culprit
