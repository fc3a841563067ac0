"""At which configuration does it break? The target's options from safe to aggressive, then its optimizer passes.

Each rung runs the deployed model once. The first wrong one names the transformation; where the engine reports the
passes that changed the model, group testing finds the fewest of them whose presence breaks it, and one whose absence
cures it. A working configuration is verified on every feed, and is the first command to run next.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.guilty_passes import guilty_passes
from tensortriage.diagnose.measurements.soundness import BUILDS_WITH_THE_REST, affords
from tensortriage.diagnose.rungs.fusion.restored_answer import restored
from tensortriage.diagnose.rungs.number_format.function_pieces import coarse_at_most, coarse_words
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import ROUNDS_INSIDE, TRANSFORMATION_CURED, TRANSFORMATION_HELPS
from tensortriage.diagnose.state.configuration import Configuration
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.capabilities import NamesPasses, OffersLadder
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, EngineMissing, UsageError
from tensortriage.values.dtype import Precision

QUESTION = "in which configuration does the target break?"

CHANGES = "which ops does the transformation change?"


@rung(QUESTION, reads=("results",), gives=("configuration", "wrong_in_fp32"), cost="a build for each option")
def configurations(inv: Investigation, evidence: Evidence) -> Answer:
    """Find the first rung of the target's options that breaks the answer; no verdict, but a cure when there is one."""
    target = inv.question.target
    engine = resolve(target).engine
    rungs = engine.ladder(target.options) if isinstance(engine, OffersLadder) else ()
    if len(rungs) < 2:
        return Answer()
    if not affords(inv, BUILDS_WITH_THE_REST):
        inv.record.unasked(QUESTION)
        return Answer()
    inv.lab.progress(f"trying {len(rungs) - 1} other configurations of {target.name}")
    works: tuple[str, EngineSpec] | None = None
    tried: dict[str, bool | None] = {}
    wrong_in_fp32 = False
    for words, options in rungs[:-1]:
        spec = target.with_options(options)
        tried[words] = right(inv, evidence, spec)
        if tried[words] is False:
            wrong_in_fp32 = resolve(spec).precision is Precision.FP32
            break
        works = (words, spec) if tried[words] else works  # a rung that the engine cannot build says nothing
    if works is None:
        wrong = next((words for words, answer in tried.items() if answer is False), "")
        answer = f"at none: it fails with {wrong} as well" if wrong else "unknown: no other configuration can be built"
        inv.record.answered(QUESTION, answer, tried=tried)
        return Answer(findings=Findings(wrong_in_fp32=wrong_in_fp32))
    breaks, options = next((rung for rung in rungs if tried.get(rung[0]) is False), rungs[-1])
    config = Configuration(works[1], breaks, target.with_options(options))
    config = by_pass(inv, evidence, config) or config
    if not all(right(inv, evidence, config.works, feed=number) for number in range(len(evidence.results))):
        inv.record.answered(QUESTION, f"{works[0]} is right on the worst feed, but not on every feed", tried=tried)
        return Answer()
    because = f", because of {config.transformation}" if config.passes else ""
    inv.record.answered(
        QUESTION,
        f"right with {works[0]}, wrong with {breaks}{because}",
        tried=tried,
        passes=list(config.passes),
        works=str(config.works),
        observation="deployed",
    )
    return Answer(findings=Findings(configuration=config))


def right(inv: Investigation, evidence: Evidence, spec: EngineSpec, *, feed: int | None = None) -> bool | None:
    """Return whether the deployed model is right with other options, on the feed that fails worst or on a certain one.

    None when the engine refuses these options, or fails with them.
    """
    looked_into = evidence.feed if feed is None else evidence.results[feed].feed
    try:
        return restored(inv, evidence, looked_into, model=inv.model, spec=spec)
    except (EngineError, EngineMissing, UsageError):
        return None


def by_pass(inv: Investigation, evidence: Evidence, config: Configuration) -> Configuration | None:
    """Return the passes that break the first wrong rung, and the user's options without them; None when not known."""
    target = inv.question.target
    engine = resolve(target).engine
    if not isinstance(engine, NamesPasses):
        return None
    path = inv.lab.workspace.file(inv.model)
    try:
        names = tuple(engine.passes(path, config.broken.options))
    finally:
        inv.lab.workspace.release(path)
    guilty = guilty_passes(names, lambda absent: right(inv, evidence, left_out(engine, config.broken, absent)))
    if not guilty:
        return None
    for disabled in (*((name,) for name in reversed(guilty)), guilty):
        cured = left_out(engine, target, disabled)
        if right(inv, evidence, cured):
            return dataclasses.replace(config, works=cured, passes=guilty, disabled=disabled)
    return dataclasses.replace(config, passes=guilty)


def left_out(engine: NamesPasses, spec: EngineSpec, passes: Sequence[str]) -> EngineSpec:
    """Return a spec with given passes left out."""
    return spec.with_options(engine.without(spec.options, passes))


@rung(
    CHANGES,
    reads=("configuration", "results"),
    cost="nothing new",
    ends=(VerdictKind.FUSION_FAULT, VerdictKind.INCONCLUSIVE),
)
def transformation(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Is a transformation to blame though no set of ops shows it? Then the ops are those whose regions it changes."""
    config = evidence.configuration
    if config is None or changes_precision(inv, config):
        return None
    before, after = regions(inv, config.works), regions(inv, config.broken)
    changed = [nodes for nodes in after if nodes not in before]
    ops = [name for nodes in changed for name in nodes]
    inv.record.answered(
        CHANGES,
        f"{len(ops)} ops in {len(changed)} regions" if ops else "unknown: the plans do not show it",
        regions=[list(nodes) for nodes in changed[:20]],
    )
    graph = inv.model.graph
    culprits = [
        Culprit(node.name, node.op_type, node.outputs[0], reason=f"in a region that only {config.breaks} makes")
        for node in map(graph.node, ops[:10])
    ]
    what = "optimizer pass" if len(config.passes) == 1 else "optimizer passes"
    named = f"the {what} {config.transformation}" if config.passes else f"what {config.breaks} turns on"
    if coarse_at_most(inv, evidence):
        words = f"{named} puts {inv.question.target} off by {coarse_words(inv)}; {config.works} is right"
        return Conclusion(VerdictKind.INCONCLUSIVE, ROUNDS_INSIDE, words)
    return Conclusion(
        VerdictKind.FUSION_FAULT,
        TRANSFORMATION_CURED if config.passes else TRANSFORMATION_HELPS,
        f"{named} makes {inv.question.target} wrong: no op is wrong in isolation, and {config.works} is right",
        culprits=culprits,
    )


def changes_precision(inv: Investigation, config: Configuration) -> bool:
    """Return whether the working configuration computes in another format, so that it proves nothing."""
    return resolve(config.works).precision is not inv.precision


def regions(inv: Investigation, spec: EngineSpec) -> Mapping[tuple[str, ...], None]:
    """Return the sets of nodes that an engine fuses in the deployed model, in order; empty if not reported."""
    try:
        plan = inv.lab.plan(spec, inv.model)
    except EngineError:
        return {}
    return dict.fromkeys(region.nodes for region in plan.regions if len(region.nodes) > 1) if plan else {}
