"""Is the target's file the reference's network, typed in fp16 or bf16? Then only the format's cost is in question.

Brought back to float32, with the original's numbers where its constants are only rounded, such a file must compute the
original's outputs; else it is another network. The cost of rounding to its types is then emulated on the original, and
the target's error is compared with that: a value beyond the range is `range-overflow`, the rest `rounding`.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import beyond_fp32, is_too_coarse
from tensortriage.compare.measured import compare_all
from tensortriage.compare.reference_checks import mismatched
from tensortriage.diagnose.measurements.evidence import Evidence, Findings, TypedNetwork
from tensortriage.diagnose.measurements.outputs import (
    FLOOR_FEEDS,
    OutputFigures,
    figures_of_parts,
    judge,
    output_floors,
    parts_of,
    worst_result,
)
from tensortriage.diagnose.rungs.number_format.overflow import out_of_range
from tensortriage.diagnose.rungs.number_format.predicted import rounding
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import UNDECIDED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.explanations import FOLDED, ROUNDED
from tensortriage.envelope.floors import fp32_floors
from tensortriage.errors import DataError, EngineError, ModelError, UsageError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.folded_norms import has_foldable_norms
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.dtype import Precision
from tensortriage.values.text import error_size, magnitude

QUESTION = "is the target's model the reference's model in another number format?"


@rung(
    QUESTION,
    reads=("model_diff", "results", "floors", "ranges", "in_context", "in_context_moved", "local"),
    gives=(
        "results",
        "floors",
        "excess",
        "same_network",
        "unexplained",
        "in_context",
        "in_context_moved",
        "in_context_judged",
        "rounded",
        "wrong_together",
        "kept",
    ),
    cost="an emulation, a run of the target on every feed",
    ends=(
        VerdictKind.ROUNDING,
        VerdictKind.RANGE_OVERFLOW,
    ),
)
def typed_file(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Judge a file that is the reference's network with other types.

    Where it is one, and its format does not explain the target's error, that is a finding, and the diagnosis continues
    with the target's model: the question is then whether the engine computes that.
    """
    matched = evidence.model_diff
    if matched is None or not matched.typed:
        return None
    feed = inv.question.feeds[0]
    precision = _coarsest(matched)
    kept = tuple(
        n.name for n in matched.original.graph.nodes if n.name in inv.model.graph and n.name not in matched.typed
    )
    share = f"{precision.value} in {len(matched.typed)} of {len(matched.typed) + len(kept)} nodes"
    try:
        away = _distance(inv, matched, feed)
    except (EngineError, ModelError, DataError) as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}")
        return None
    same = not any(beyond_fp32(ratio) for ratio in away.values())
    answer = f"yes: {share}" if same else f"no: in float32, too, output '{max(away, key=lambda n: away[n])}' differs"
    inv.record.answered(QUESTION, answer, precision=precision.value, kept_in_fp32=kept[:20], floor_ratios=away)
    if not same:
        return None
    return _by_format(inv, evidence, matched, precision, kept, share)


def _coarsest(matched: Correspondence) -> Precision:
    """Return the type of the fewest digits among those of a file."""
    return max(set(matched.typed.values()), key=lambda precision: float(precision.dtype.finfo.eps))


def _distance(inv: Investigation, matched: Correspondence, feed: Feed) -> dict[str, float]:
    """Return how far the file is from the original in float32, in floors of the original, by output."""
    golden = inv.golden.outputs(feed)
    outputs = inv.lab.outputs(inv.question.reference, matched.restored(), feed)
    names = [spec.name for spec in inv.model.outputs if spec.name in golden]
    if problem := mismatched({name: golden[name] for name in names}, outputs):
        raise ModelError(problem, slug="outputs-differ", cure="compare models with the same outputs")
    figures = compare_all(((name, outputs[name]) for name in names), golden).metrics
    floors = fp32_floors(inv.setting(feed), names)
    return {name: error_of(figure) / max(floors.get(name, 0.0), 1e-30) for name, figure in figures.items()}


def _by_format(
    inv: Investigation,
    evidence: Evidence,
    matched: Correspondence,
    precision: Precision,
    kept: tuple[str, ...],
    share: str,
) -> Answer:
    """Compare the target's error on its own file with the cost of the format on the original."""
    question = inv.question
    if inv.precision in ROUNDED:  # what the engine rounds to by itself, whatever the file says
        precision, kept = inv.precision, ()
    try:
        measured = []
        for feed in question.feeds:
            golden = inv.golden.outputs(feed)
            fed = check_feed(feed, matched.changed.inputs, casting=Casting.ROUND)
            outputs = inv.lab.outputs(question.target, matched.changed, fed)
            wanted = [spec.name for spec in inv.model.outputs if spec.name in golden]
            if mismatched({name: golden[name] for name in wanted}, outputs):
                return Answer(findings=Findings(unexplained=TypedNetwork(share)))
            figures = compare_all(((name, outputs[name]) for name in wanted), golden).metrics
            parts = figures_of_parts({name: np.asarray(golden[name]) for name in wanted}, outputs, parts_of(inv, feed))
            measured.append(OutputFigures(figures, parts=parts))
    except (EngineError, DataError):
        return Answer(findings=Findings(unexplained=TypedNetwork(share)))  # the ladder finds out how it fails
    options: dict[str, str] = {"precision": precision.value} | ({"kept": "+".join(kept)} if kept else {})
    emulated = inv.about(question.on_target(EngineSpec("emulate", options), kept=kept))
    floors = output_floors(emulated)
    results = tuple(
        judge(emulated, feed, figures, floors) for feed, figures in zip(question.feeds, measured, strict=True)
    )
    worst = worst_result(results)
    if worst.passes:
        return Answer(findings=Findings(same_network=True))
    answer = _explained(emulated, evidence.with_(results=results), _cost_of_folding(inv, matched.changed))
    if (verdict := answer.verdict) is None:
        name, error, _ = worst.worst_output()
        return Answer(findings=Findings(same_network=True, unexplained=TypedNetwork(share, name, error)))
    summary, following = f"the target's model is the reference's, {share}: {verdict.summary}", verdict.next
    if verdict.kind is VerdictKind.ROUNDING:
        look = ("--target", str(question.target), "--target-model", str(matched.changed.path))
        following = (triage_command(inv.question, "run", *look),)
        excess = answer.findings.get("excess", ())
        if excess and not is_too_coarse(worst.worst_output()[1]):
            first = excess[0]
            summary += (
                f"; {precision.value} cannot hold {first.op_type} '{first.node}' ({magnitude(first.magnitude)}), "
                "which shows on engines that store every result in it"
            )
    verdict = dataclasses.replace(verdict, summary=summary, next=following)
    return Answer(verdict, {**answer.findings, "results": results, "same_network": True}, emulated.question)


def _cost_of_folding(inv: Investigation, file: Model) -> Mapping[str, float]:
    """Return how far off an engine is at outputs that folds the file's normalizations, and keeps weights in its types.

    Empty where there is nothing to fold, or an operator has no exact kernel.
    """
    costs: dict[str, float] = {}
    if not has_foldable_norms(file):
        return costs
    for feed in inv.question.feeds[:FLOOR_FEEDS]:
        golden = inv.golden.outputs(feed)
        names = [spec.name for spec in file.outputs if spec.name in golden]
        try:
            found = inv.lab.values(FOLDED, file, check_feed(feed, file.inputs, casting=Casting.ROUND), names)
        except (EngineError, UsageError):
            return {}
        for name, figure in compare_all(((name, np.asarray(found[name])) for name in names), golden).metrics.items():
            costs[name] = max(costs.get(name, 0.0), error_of(figure))
    return costs


def _explained(emulated: Investigation, evidence: Evidence, folding: Mapping[str, float]) -> Answer:
    """Decide whether the error of an emulated format is its range or its rounding.

    Args:
        emulated: The investigation of the original on the emulated format.
        evidence: With the figures of the target's own file.
        folding: The error of engines that fold the file's weights, by output.
    """
    overflow = out_of_range(emulated, evidence)
    if overflow.verdict:
        return overflow
    known = evidence.with_(**overflow.findings)
    if known.floors is not None and folding:
        target = {name: max(floor, folding.get(name, 0.0)) for name, floor in known.floors.target.items()}
        known = known.with_(floors=dataclasses.replace(known.floors, target=target))
    rounded = rounding(emulated, known)
    return Answer(rounded.verdict, {**overflow.findings, **rounded.findings})


@rung(
    "does its number format explain the error of the target's file?",
    reads=("unexplained",),
    cost="nothing new",
    ends=(VerdictKind.INCONCLUSIVE,),
)
def unexplained_format(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """The target computes its typed file as the reference does, and that is further off than its format explains."""
    typed = evidence.unexplained
    if typed is None:
        return None
    off = f"; output '{typed.output}' differs by {error_size(typed.error)}, which its format does not explain"
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        UNDECIDED,
        f"the target's model is the reference's, {typed.share}{off if typed.output else ''}; "
        f"{inv.question.target} computes that file as {inv.question.reference} does",
    )
