"""Does the target's file stand for the reference's network, quantized or narrowed?

Asked of the outputs, before any node is looked for: `tensortriage.envelope.unrounded_match` evaluates the file as it
was before it was rounded. Where that is the reference's network up to the rounding of its constants, it is the same
network however it was written; the cost of rounding, and whether the engine computes the file, are asked afterwards.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import fp32_floors
from tensortriage.envelope.unrounded_match import UnroundedMatch, enough, is_rounded
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.mark_outputs import freeze
from tensortriage.values.text import error_size

_BIAS_KEPT = 1e-5
"""Relative difference up to which a bias is the original's: folding a normalization in float32 moves it by less."""

QUESTION = "does the target's file stand for the reference's network?"


@rung(
    QUESTION,
    reads=("model_diff",),
    gives=("unrounded_match", "same_network"),
    cost="seven evaluations of the file in float64",
)
def represents_network(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Hold a quantized or narrow file, unrounded, against the reference's network."""
    beside = evidence.model_diff
    if beside is None or not is_rounded(beside.changed) or is_rounded(inv.model):
        return None
    own = [spec.name for spec in inv.model.outputs]
    network: list[tuple[Feed, Mapping[str, np.ndarray]]] = []
    for feed in inv.question.feeds:
        store = inv.golden.outputs(feed)
        network.append((feed, {name: store[name] for name in own if name in store}))
        if enough([outputs for _, outputs in network]):
            break
    floors, corrected = fp32_floors(inv.setting(inv.question.feeds[0]), own), 0
    try:
        standing = UnroundedMatch.of(inv.lab, beside.changed, network, floors)
        if not standing.is_same and (others := _other_biases(beside)):
            restored = UnroundedMatch.of(inv.lab, freeze(beside.changed, others), network, floors)
            if restored.is_same:
                standing, corrected = restored, len(others)
    except (EngineError, UsageError, DataError) as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    if not standing.outputs:
        return None
    name = standing.worst
    worst = standing.outputs[name]
    biases = f" with {corrected} biases as they were before they were corrected for it," if corrected else ""
    limit = f"{error_size(worst.limit)} by rounding its constants"
    apart = f"unrounded,{biases} output '{name}' is {error_size(worst.error)} from it, {limit}"
    figures = {each: [figure.error, figure.noise, figure.cost] for each, figure in standing.outputs.items()}
    inv.record.answered(
        QUESTION,
        f"{'yes' if standing.is_same else 'no'}: {apart}",
        error_noise_cost=figures,
        unrounded=str(standing.unrounded),
    )
    return Answer(findings=Findings(unrounded_match=standing, same_network=standing.is_same))


def _other_biases(beside: Correspondence) -> dict[str, np.ndarray]:
    """Return the original's biases where a file has others, by their names in the file; none where only one is another.

    Quantizers correct the biases of layer after layer for what rounding moves in the mean (Nagel et al. 2019,
    "Data-Free Quantization Through Weight Equalization and Bias Correction"; NNCF by default). A mistake is in one.
    """
    found = {}
    for now, was in beside.constants.items():
        if now not in beside.changed.graph.constants:
            continue
        other, bias = beside.changed.graph.weight(now), beside.original.graph.weight(was)
        alike = other.shape == bias.shape and other.dtype == bias.dtype == np.float32 and _is_bias(bias)
        if alike and not np.allclose(other, bias, rtol=_BIAS_KEPT, atol=0.0):
            found[now] = bias
    return found if len(found) > 1 else {}


def _is_bias(array: np.ndarray) -> bool:
    """Return whether a constant has one number for each channel, whatever axes of size 1 it has besides."""
    return array.size > 1 and max(array.shape) == array.size
