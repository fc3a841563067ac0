"""The ladder: the guide's questions in order of cost, answered by evidence, until one answer is decisive.

Each rung is a question to the investigation and the evidence so far that gives a verdict, or None to go on.
"""

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import above_the_floor, compare_outputs, noise_of
from tensortriage.diagnose.measurements.soundness import reference_is_sound, says_nothing
from tensortriage.diagnose.measurements.suggested_commands import reduce_command
from tensortriage.diagnose.rungs.fusion.fusion import fusion_fault
from tensortriage.diagnose.rungs.fusion.transformations import configurations, transformation, with_cure
from tensortriage.diagnose.rungs.number_format.format_range import scan_ranges
from tensortriage.diagnose.rungs.number_format.freedoms_taken import freedoms_taken
from tensortriage.diagnose.rungs.number_format.layerwise import layer_wise
from tensortriage.diagnose.rungs.number_format.overflow import out_of_range
from tensortriage.diagnose.rungs.number_format.predicted import rounding
from tensortriage.diagnose.rungs.number_format.sensitivity import ill_conditioned
from tensortriage.diagnose.rungs.number_format.typed_file import typed_file, unexplained_format
from tensortriage.diagnose.rungs.operators.deciding_element import deciding_elements
from tensortriage.diagnose.rungs.operators.faulty_op import local_fault
from tensortriage.diagnose.rungs.operators.layout import layout, outputs_in_place
from tensortriage.diagnose.rungs.operators.origin import nonfinite
from tensortriage.diagnose.rungs.premises.changed import model_changed
from tensortriage.diagnose.rungs.premises.intermittent import build_to_build, contradicted
from tensortriage.diagnose.rungs.premises.network import network_changed
from tensortriage.diagnose.rungs.premises.own_rows import contradictions
from tensortriage.diagnose.rungs.premises.random_data import random_data
from tensortriage.diagnose.rungs.premises.repeated import run_to_run
from tensortriage.diagnose.rungs.premises.second_opinion import second_reference
from tensortriage.diagnose.rungs.premises.shape_sweep import broken_shape, sweep, with_shapes
from tensortriage.diagnose.rungs.premises.training_mode import left_in_training, with_training
from tensortriage.diagnose.rungs.premises.two_targets import changed_between, with_two_targets
from tensortriage.diagnose.rungs.quantization.int16_sums import saturating_sums
from tensortriage.diagnose.rungs.quantization.integer_engine import integer_arithmetic
from tensortriage.diagnose.rungs.quantization.quantized_model import (
    check_quantizers,
    quantized_model,
    sound_quantization,
)
from tensortriage.diagnose.rungs.rung import Rung
from tensortriage.diagnose.state.confidence import UNDECIDED, unfailing
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.runs.budget import BudgetSpent

RUNGS: tuple[Rung, ...] = (
    outputs_in_place,
    out_of_range,
    layer_wise,
    contradicted,
    rounding,
    integer_arithmetic,
    saturating_sums,
    ill_conditioned,
    configurations,
    nonfinite,
    local_fault,
    deciding_elements,
    freedoms_taken,
    contradicted,
    layout,
    fusion_fault,
    transformation,
)
"""What is asked, in this order, once the target is known to fail."""

BESIDE_ROUNDING: tuple[Rung, ...] = (local_fault, freedoms_taken)
"""What is asked where rounding explains the outputs and not what is seen inside."""


def climb(inv: Investigation, evidence: Evidence) -> Verdict:
    """Ask the questions in order and return the verdict of the first decisive answer.

    Args:
        inv: The investigation.
        evidence: Filled on the way; complete as far as the ladder was climbed, also when an error ends it.
    """
    try:
        verdict = first_decisive(inv, evidence)
    except BudgetSpent:
        verdict = evidence.rounded or out_of_budget(inv, evidence)
    if verdict.kind in (VerdictKind.MATCH, VerdictKind.ROUNDING):
        try:
            verdict = random_data(inv, evidence) or verdict
        except BudgetSpent:
            inv.unasked(random_data.title)
    verdict = with_shapes(inv.refreshed(verdict), evidence.shapes)
    return with_training(evidence, with_two_targets(evidence, verdict))


def first_decisive(inv: Investigation, evidence: Evidence) -> Verdict:
    """Climb until an answer is decisive.

    Raises:
        BudgetSpent: When the time is over before.
    """
    left_in_training(inv, evidence)
    if verdict := network_changed(inv, evidence):
        return verdict
    if verdict := reference_is_sound(inv):
        return verdict
    changed = inv.question.target_model
    if changed is not None:
        beside = Correspondence.of(inv.model, changed)
        if verdict := quantized_model(inv, evidence, beside):
            return verdict
        if verdict := typed_file(inv, evidence, beside):
            return verdict
        same = evidence.quantization or evidence.same_network
        if not same and (verdict := model_changed(inv, beside)):
            return verdict
        inv.focus(changed)
    changed_between(inv, evidence)
    scan_ranges(inv, evidence)
    check_quantizers(inv)
    evidence.results, verdict = compare_outputs(inv)
    evidence.shapes, of_shapes = sweep(inv)
    if verdict:
        return verdict
    evidence.results += of_shapes
    if verdict := second_reference(inv, evidence):
        return verdict
    evidence.results += contradictions(inv, evidence)
    fails = above_the_floor(inv, evidence.results)
    if verdict := run_to_run(inv, evidence.results) or build_to_build(inv, evidence):
        return verdict
    if not fails:
        verdict = says_nothing(inv) or broken_shape(inv, evidence.shapes)
        verdict = verdict or sound_quantization(inv, evidence) or unexplained_format(inv, evidence)
        return verdict or match(inv, evidence)
    for rung in RUNGS:
        if evidence.rounded is not None and rung not in BESIDE_ROUNDING:
            continue
        evidence.asked = (*evidence.asked, rung.title)
        if verdict := rung(inv, evidence):
            return with_cure(inv, evidence, verdict)
    return evidence.rounded or with_cure(inv, evidence, inconclusive(inv, evidence))


def match(inv: Investigation, evidence: Evidence) -> Verdict:
    """Everything agrees: the more samples, and the more real they are, the surer."""
    worst = evidence.worst
    name, _, ratio = worst.worst
    samples = len(evidence.results)
    limit = "within the tolerance given" if inv.question.tolerance else f"{ratio:.2g}x the fp32 noise floor"
    return inv.verdict(
        VerdictKind.MATCH,
        unfailing(samples, inv.inputs_word),
        f"{inv.question.target} agrees with {inv.question.reference} on {samples} feed{'s' * (samples > 1)}: worst "
        f"output '{name}' {worst.in_words(name, noise_of(inv))}, {limit}",
    )


def inconclusive(inv: Investigation, evidence: Evidence) -> Verdict:
    """Nothing was decisive: say what is known and what was excluded."""
    name, _, _ = evidence.worst.worst
    if evidence.influence is not None:
        known = f"the ops that are wrong by themselves explain only {evidence.influence.explained:.0%} of the error"
    elif evidence.local is not None:
        known = "no op and no piece of several ops makes it: an effect of the whole graph is likely"
    else:
        known = "the ops could not be run one by one"
    return inv.verdict(
        VerdictKind.INCONCLUSIVE,
        UNDECIDED,
        f"{inv.question.target} fails: output '{name}' {evidence.worst.in_words(name, noise_of(inv))}, rounding does "
        f"not explain it, and {known}",
        next=[
            reduce_command(inv),
            inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all"),
        ],
    )


def out_of_budget(inv: Investigation, evidence: Evidence) -> Verdict:
    """The time is over: say what is known, and what was not asked any more."""
    left = [rung.title for rung in RUNGS if rung.title not in evidence.asked[:-1]]
    inv.unasked(*dict.fromkeys(left))
    if evidence.results and not evidence.worst.passes:
        name, _, _ = evidence.worst.worst
        known = f"{inv.question.target} fails: output '{name}' {evidence.worst.in_words(name, noise_of(inv))}"
    elif evidence.results:
        known = f"{inv.question.target} agrees on {len(evidence.results)} feeds, as far as was seen"
    else:
        known = f"nothing is known of {inv.question.target} yet"
    return inv.verdict(
        VerdictKind.INCONCLUSIVE,
        UNDECIDED,
        f"the budget of {inv.question.budget_seconds:g} s is spent: {known}; the same command with a larger budget "
        "goes on from here",
        next=[inv.command("diagnose", "--target", str(inv.question.target), "--case", str(inv.case.folder))],
    )
