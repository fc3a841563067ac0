"""The remedy: a change that is tried on the deployed target before it is proposed, with the error before and after.

The first is the guide's: the sanitized model, its constants folded. Others follow from the verdict: fusion breakers and
engine options were found and verified on the way; ops whose values leave the format's range, or that are wrong in a
narrow format, are kept in fp32. The latter is tried on the target as it would be deployed: with the engine's own option
for it where there is one, else as an ONNX file with such types, on the engine in the mode that follows a file's types.
"""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from tensortriage.compare.judgement.within import within_healthy
from tensortriage.diagnose.measurements.branches import with_taken_branches
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult, output_floors
from tensortriage.diagnose.measurements.soundness import affords
from tensortriage.diagnose.rungs.fusion.restored_answer import with_change
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Remedy, VerdictKind
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.envelope.healthy_values import typed_limits
from tensortriage.errors import EngineError, EngineMissing, ModelError, TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.model.transforms.constant_folding import fold_constants
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.model.transforms.unused_removal import clean
from tensortriage.precision.selection.node_groups import fused_nodes, groups_of
from tensortriage.precision.selection.typed_candidates import deployed, typed_file_note
from tensortriage.runs.budget import BudgetSpent
from tensortriage.runs.lab import FLOAT64
from tensortriage.values.dtype import Precision
from tensortriage.values.text import count, error_size
from tensortriage.workflows.diagnosis.accuracies import WantedFix
from tensortriage.workflows.diagnosis.fix_words import REMEDY
from tensortriage.workflows.diagnosis.recalibration import recalibration

TYPED = (Precision.FP16, Precision.BF16)
"""Formats in which an ONNX file can be typed."""

NOT_THE_TARGET = (VerdictKind.COMPARISON_UNSOUND, VerdictKind.MODEL_CHANGED, VerdictKind.ENGINE_HANG)
"""Verdicts on which nothing is tried: about something else than the target, or too slow to try anything."""

KEPT_MAY_HELP = (
    VerdictKind.RANGE_OVERFLOW,
    VerdictKind.LOCAL_FAULT,
    VerdictKind.NON_FINITE,
    VerdictKind.INTERMITTENT,
)


@frozen_dataclass
class Proposal:
    """A change to try.

    Attributes:
        kind: As of `Remedy`.
        words: The change, in words.
        spec: The engine to try it on.
        model: The model to try it with.
        file: The model that would be deployed; None when the model does not change.
        nodes: Nodes kept in fp32.
    """

    kind: str
    words: str
    spec: EngineSpec
    model: Model
    file: Model | None = None
    nodes: tuple[str, ...] = ()


def remedy_of(inv: Investigation, evidence: Evidence, conclusion: Conclusion, wanted: WantedFix) -> Remedy | None:
    """Try changes that may help; return the first that does, or None.

    Args:
        inv: The investigation.
        evidence: Its evidence.
        conclusion: Its conclusion.
        wanted: The changed model's file, and the scores to reach.
    """
    if conclusion.kind.exit_code != 1 or conclusion.kind in NOT_THE_TARGET:
        return None
    tried = []
    try:
        if evidence.calibrated is not None:
            return recalibration(inv, evidence.calibrated, wanted)
        for proposal in proposals(inv, evidence, conclusion):
            if not affords(inv, 1.0):
                raise BudgetSpent
            inv.lab.progress(f"trying on the target: {proposal.words}")
            effect = effect_of(inv, evidence, proposal)
            if effect.right:
                return recorded(inv, evidence, proposal, effect.error, wanted)
            tried.append(f"{proposal.words} ({effect.words})")
    except BudgetSpent:
        inv.record.unasked(REMEDY)
        return None
    if tried or wanted.file is not None:
        unknown = "no change of the model or of the target's options is known for this verdict"
        inv.record.answered(REMEDY, f"nothing that was tried: {'; '.join(tried)}" if tried else unknown)
    return None


def proposals(inv: Investigation, evidence: Evidence, conclusion: Conclusion) -> Iterator[Proposal]:
    """Yield changes that may help, the least intrusive first; none is a file if branches replaced Ifs."""
    target = inv.question.target
    if conclusion.kind is VerdictKind.BUILD_FAILED:
        yield from _easier_to_build(inv)
        return
    if inv.question.taken:
        yield from _other_options(inv, evidence)
        return
    varies = conclusion.kind is VerdictKind.INTERMITTENT and not evidence.builds_fail  # else by chance one is right
    if not varies and (folded := sanitized(inv)) is not None and not still_there(inv, conclusion, folded):
        yield _folding(inv, folded)
    if conclusion.breakers:
        names = ", ".join(f"'{value}'" for value in conclusion.breakers[:5])
        marked = mark_outputs(inv.model, conclusion.breakers)
        yield Proposal("breakers", f"marking {names} as outputs", target, marked, marked)
    nodes = evidence.kept or tuple(dict.fromkeys(culprit.node for culprit in conclusion.culprits if not varies))
    known = {node.name for node in inv.model.graph.nodes}
    narrow = inv.precision in ROUNDED and not evidence.wrong_in_fp32
    if narrow and conclusion.kind in KEPT_MAY_HELP and nodes and known.issuperset(nodes):
        yield from keeping(inv, evidence, nodes)
    yield from _other_options(inv, evidence)


def _folding(inv: Investigation, folded: Model) -> Proposal:
    gone = len(inv.model.graph.nodes) - len(folded.graph.nodes)
    words = f"the sanitized model, whose constants are folded ({count(gone, 'node')} fewer)"
    return Proposal("sanitize", words, inv.question.target, folded, folded)


def _easier_to_build(inv: Investigation) -> Iterator[Proposal]:
    """Yield models that give the same on the first feed, with less in them that an engine may not build."""
    target, feed = inv.question.target, inv.question.feeds[0]
    if (folded := sanitized(inv)) is not None:
        yield _folding(inv, folded)
    open_sizes = {spec.name: feed.tensors[spec.name].shape for spec in inv.model.inputs if not spec.is_static}
    if open_sizes:
        fixed = with_input_shapes(inv.model, open_sizes)
        words = "the sizes of its inputs fixed: " + ", ".join(f"{n} {list(size)}" for n, size in open_sizes.items())
        yield Proposal("fixed-sizes", words, target, fixed, fixed)
    if any(node.op_type == "If" for node in inv.model.graph.nodes):
        try:
            straight, taken = with_taken_branches(inv, feed)
        except (EngineError, ModelError):
            return
        words = f"the branches that these inputs take in place of {count(len(taken), 'If')}"
        yield Proposal("branches", words, target, straight, straight)


def _other_options(inv: Investigation, evidence: Evidence) -> Iterator[Proposal]:
    if evidence.configuration is not None:
        works = evidence.configuration.works
        yield Proposal("engine-option", f"{works} instead of {inv.question.target}", works, inv.model)


def sanitized(inv: Investigation) -> Model | None:
    """Return the model with its constants folded; None where that takes no node away."""
    try:
        folded = clean(fold_constants(inv.model))
    except TriageError:
        return None
    return folded if len(folded.graph.nodes) < len(inv.model.graph.nodes) else None


def still_there(inv: Investigation, conclusion: Conclusion, folded: Model) -> bool:
    """Return whether the sanitized model still has the faulty op unchanged, so that it fails as well."""
    if conclusion.kind is not VerdictKind.LOCAL_FAULT or not conclusion.culprits:
        return False
    name = conclusion.culprits[0].node
    if name not in inv.model.graph or name not in folded.graph:
        return False
    before, after = inv.model.graph.node(name), folded.graph.node(name)
    made = [[model.graph.producer(value) is None for value in before.inputs] for model in (inv.model, folded)]
    return (before.op_type, before.inputs) == (after.op_type, after.inputs) and made[0] == made[1]


def keeping(inv: Investigation, evidence: Evidence, nodes: tuple[str, ...]) -> Iterator[Proposal]:
    """Yield the ways to keep given nodes in fp32: by themselves, then with all that the target runs as one with them.

    An engine may not be able to keep an operator without the activation that it fuses into it.
    """
    yield from kept_alone(inv, evidence, nodes)
    graph = inv.model.graph
    try:
        plan = inv.lab.plan(inv.question.target, inv.model)
    except EngineError:
        plan = None
    regions = () if plan is None else fused_nodes(plan, graph)
    whole = tuple(groups_of(graph, [node.name for node in graph.nodes], (), regions).closed(nodes))
    if len(whole) > len(nodes):
        yield from kept_alone(inv, evidence, whole)


def kept_alone(inv: Investigation, evidence: Evidence, nodes: tuple[str, ...]) -> Iterator[Proposal]:
    """Yield the ways to keep just some nodes in fp32: by the engine's option, and by the types of the file."""
    target = inv.question.target
    words = f"{len(nodes)} op{'s' * (len(nodes) > 1)} in fp32: " + ", ".join(nodes[:5]) + ", ..." * (len(nodes) > 5)
    typed = None
    if inv.precision in TYPED:
        try:
            feed = evidence.feed if evidence.results else inv.question.feeds[0]
            typed = convert(inv.model, inv.precision, specs=inv.golden.specs(feed), kept_nodes=nodes)
        except TriageError:
            typed = None
    if "kept" in resolve(target).engine.options:
        spec = target.with_options({**target.options, "kept": "+".join(nodes)})
        yield Proposal("keep-fp32", words, spec, inv.model, typed, nodes)
        words += ", with these types in the file"
    if typed is not None and target.name != "emulate":  # whose option types the same file
        yield Proposal("keep-fp32", words, deployed(target), typed, typed, nodes)


@frozen_dataclass
class Effect:
    """The effect of a change.

    Attributes:
        error: Largest error of an output over all feeds.
        right: Whether it makes the target right: every output is within its limit, or its error is explained by
            rounding to the format, or by the expected choices of the target's hardware.
        words: The remaining error, or why it cannot be measured.
    """

    error: float
    right: bool
    words: str = ""


def effect_of(inv: Investigation, evidence: Evidence, proposal: Proposal) -> Effect:
    """Return the effect of a change on all feeds, up to the first on which it does not help."""
    worst = 0.0
    for feed in [result.feed for result in evidence.results] or inv.question.feeds:
        try:
            floors = evidence.floors or (evidence.worst_feed.floors if evidence.results else output_floors(inv))
            after = with_change(inv, feed, floors, model=proposal.model, spec=proposal.spec)
        except (TriageError, EngineMissing) as error:
            return Effect(math.inf, right=False, words=error.slug)
        if after is None:
            return Effect(math.inf, right=False, words="other shapes")
        worst = max(worst, *after.errors.values())
        finite = all(map(math.isfinite, after.errors.values()))
        right = after.passes or not beyond_format(inv, after) or as_hardware_does(inv, after, proposal)
        if not finite or not right:
            return Effect(worst, right=False, words=f"still off by {error_size(worst)}")
    return Effect(worst, right=True)


def as_hardware_does(inv: Investigation, after: FeedResult, proposal: Proposal) -> bool:
    """Return whether outputs are as far off as hardware of the target's class makes the model typed as proposed."""
    if proposal.file is None:
        return False
    store = inv.golden.outputs(after.feed)
    limits = typed_limits(
        inv.setting(after.feed), proposal.file, {name: np.asarray(store[name]) for name in after.metrics}
    )
    return all(
        after.within[name] or (name in limits and within_healthy(error, limits[name].error))
        for name, error in after.errors.items()
    )


def file_works(inv: Investigation, evidence: Evidence, proposal: Proposal) -> bool:
    """Return whether the file to write matches the trial, where the trial did not use the file itself."""
    if proposal.file is None or proposal.file is proposal.model:
        return proposal.file is not None
    words = f"{proposal.words}, as a file"
    tries = (dataclasses.replace(proposal, spec=spec, model=proposal.file, words=words) for spec in (PLAIN, FLOAT64))
    return any(effect_of(inv, evidence, each).right for each in tries)


def recorded(inv: Investigation, evidence: Evidence, proposal: Proposal, after: float, wanted: WantedFix) -> Remedy:
    """Record the change that helps, write its model if requested, and return it as the remedy."""
    before = max(evidence.worst_feed.errors.values()) if evidence.results else None
    written = note = ""
    if wanted.file is not None and proposal.file is None:
        note = "there is no file to write: it is an option of the engine"
    elif wanted.file is not None and not file_works(inv, evidence, proposal):
        note = "a file with these types does not compute the same on any engine here"
    elif wanted.file is not None and proposal.file is not None:
        proposal.file.save(wanted.file)
        written = str(wanted.file)
        note = typed_file_note(inv.precision) if proposal.kind == "keep-fp32" else ""
    effect = "the target answers, off by"
    if before is not None:  # of builds that differ, the deployed one may be right already
        effect = (
            f"the output error falls from {error_size(before)} to" if not before <= after else "the output error is"
        )
    summary = f"{proposal.words}: {effect} {error_size(after)}"
    metric, enough = wanted.scored(proposal.spec, proposal.model)
    right = enough is not False
    told = f"; written to {written}" if written else f"; no file is written: {note}" if note else ""
    inv.record.answered(
        REMEDY,
        f"{'yes' if right else 'it helps'}: {summary}, on {proposal.spec}{told}",
        kind=proposal.kind,
        nodes=proposal.nodes,
        error_before=before,
        error_after=after,
        target=str(proposal.spec),
    )
    return Remedy(
        proposal.kind, summary, proposal.nodes, str(proposal.spec), before, after, written, metric, right, note
    )
