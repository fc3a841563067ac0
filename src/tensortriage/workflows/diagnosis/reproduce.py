"""The last step of a diagnosis that names ops: those ops alone, as a case that fails in a fresh process.

The culprit is cut out with the reference's values as inputs and expected outputs, run once here to see how it fails,
written as a repro pack, and run again where nothing of this process can help it. Nodes that an exporter wrote wrong are
cut out with PyTorch's values instead; where there is a network, its part lies next to them as a module. `triage debug
reduce` does more: it searches where no op is known.
"""

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, ReproFacts, VerdictKind
from tensortriage.errors import BuildFailed, TriageError
from tensortriage.inputs.feed import Feed
from tensortriage.reduce.engines.sample import GoldenSample, golden_pieces, repro_of
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.module_beside import GROUP, ModuleBeside
from tensortriage.reduce.repro.repro_case import Repro, failure_of
from tensortriage.reduce.repro.repro_pack import write_pack
from tensortriage.reduce.repro.repro_texts import TextFacts
from tensortriage.runs.budget import BudgetSpent
from tensortriage.runs.case import versions
from tensortriage.values.registered import registered
from tensortriage.values.store import MemoryStore

FOLDER = "repro"
"""Where in the case it is written."""

QUESTION = "does the culprit fail in isolation, in a fresh process?"
TOGETHER = (VerdictKind.FUSION_FAULT,)
"""Verdicts whose culprits fail together; for the others the first one counts."""

REFUSED = (VerdictKind.BUILD_FAILED,)
"""Verdicts without any result; the engine names the culprit, which is reproduced when it is refused in isolation."""

REPRODUCED = (VerdictKind.LOCAL_FAULT, VerdictKind.NON_FINITE, VerdictKind.LAYOUT, *TOGETHER)


def reproduction(inv: Investigation, evidence: Evidence, conclusion: Conclusion) -> ReproFacts | None:
    """Return the repro pack that was written into the case, where culprits fail in isolation; else None."""
    part = evidence.wrong_part
    seen = (conclusion.kind in REPRODUCED and evidence.results) or conclusion.kind in REFUSED
    if part is None and not (seen and conclusion.culprits):
        return None
    culprits = conclusion.culprits if conclusion.kind in TOGETHER else conclusion.culprits[:1]
    nodes = part.nodes if part else tuple(dict.fromkeys(culprit.node for culprit in culprits))
    known = {node.name for node in inv.model.graph.nodes}
    if not known.issuperset(nodes):
        return None
    try:
        found = reproduced(inv, evidence, nodes, conclusion.kind)
    except BudgetSpent:
        inv.record.unasked(QUESTION)
        return None
    except TriageError as error:
        inv.record.answered(QUESTION, f"unknown: {error.message}", nodes=nodes)
        return None
    if found is None:
        alone = "the target builds it" if conclusion.kind in REFUSED else "it is right"
        inv.record.answered(QUESTION, f"no: cut out, {alone}; it fails only within the model", nodes=nodes)
        return None
    answer = f"yes: {found.failure}" if found.confirmed else f"not again: here {found.failure}, there {found.otherwise}"
    inv.record.answered(QUESTION, answer, nodes=nodes, folder=found.folder)
    return found


def reproduced(
    inv: Investigation, evidence: Evidence, nodes: tuple[str, ...], verdict: VerdictKind
) -> ReproFacts | None:
    """Write the repro pack of given nodes and run it in a fresh process; None when they are right in isolation.

    A pack that this case has made before is not run again while its folder is there.

    Args:
        inv: The investigation.
        evidence: Its evidence.
        nodes: Names of the nodes.
        verdict: The verdict; nodes of a refused build are reproduced when they are refused as well, and those that make
            NaN or Inf in the whole model when they make it alone.

    Raises:
        TriageError: When it cannot be cut out or written, or the target refuses to build it alone.
    """
    question, folder, part = inv.question, inv.lab.case.folder / FOLDER, evidence.wrong_part
    engine = question.reference if part else question.target
    feed = part.feed if part else feed_of(inv, evidence)
    kept = inv.lab.derived(ReproFacts, QUESTION, engine, inv.model, feed, nodes)
    if (folder / "repro.py").exists() and (known := kept.known()) is not None:
        return known
    repro = cut_out(inv, evidence, nodes)
    local = failure_of(repro, lambda fed: inv.lab.outputs(engine, repro.model, Feed("repro", fed, feed.origin)))
    refused, lost = verdict in REFUSED, verdict is VerdictKind.NON_FINITE and part is None
    if local is None or (refused and local.kind is not FailureKind.BUILD_FAILED):
        return None
    if lost and local.kind is FailureKind.WRONG:  # rounding, of an op that is right alone
        return None
    if local.kind is FailureKind.BUILD_FAILED and not refused:  # wrong numbers are not reproduced by a refusal
        raise BuildFailed(local.message, slug="build-failed", cure="run the whole model")
    return kept.keep(written(inv, evidence, repro, local, nodes))


def feed_of(inv: Investigation, evidence: Evidence) -> Feed:
    """Return the feed that fails worst, or the first where the target never got to results."""
    return evidence.feed if evidence.results else inv.question.feeds[0]


def cut_out(inv: Investigation, evidence: Evidence, nodes: tuple[str, ...]) -> Repro:
    """Return given nodes as a model, with the reference's (or the network's) values on the feed that fails worst.

    Raises:
        ModelError: When the type of an input is not known.
    """
    part = evidence.wrong_part
    if part is not None:
        sample = GoldenSample(part.feed, MemoryStore(part.values))
    else:
        feed = feed_of(inv, evidence)
        sample = GoldenSample(feed, inv.golden.of(feed))
    pieces = golden_pieces(inv.model, (sample,))
    wanted = {pieces.item_of(node) or node for node in nodes}
    return repro_of(pieces, pieces.nodes(tuple(item for item in pieces.items if item in wanted)), (sample,))


def written(inv: Investigation, evidence: Evidence, repro: Repro, local: Failure, nodes: tuple[str, ...]) -> ReproFacts:
    """Write a repro pack and run it in a fresh process.

    Raises:
        StoreError: When it cannot be written.
        BudgetSpent: When there is no time left to run it.
    """
    question, part = inv.question, evidence.wrong_part
    module, without = _module(inv, evidence, nodes, local)
    inv.lab.budget.check()
    inv.lab.progress("running the culprit in a fresh process")
    facts = TextFacts(
        target=question.reference if part else question.target,
        versions=versions(),
        local=local,
        exported_wrong=f"{part.label}: {part.reason}" if part else "",
        module=module,
        without_module=without,
    )
    trial = write_pack(inv.lab.case.folder / FOLDER, repro, facts, limits=inv.lab.budget.within(question.limits))
    anew, label = (module.anew, module.label) if module else (None, "")
    message = trial.otherwise
    return ReproFacts(FOLDER, nodes, local.describe(), not message, module=label, anew=anew, otherwise=message)


def _module(
    inv: Investigation, evidence: Evidence, nodes: tuple[str, ...], local: Failure
) -> tuple[ModuleBeside | None, str]:
    """Return the module that nodes were exported from, or why there is none; both empty without a network."""
    network = inv.question.network
    if network is None or (point := registered(GROUP).get(network.name)) is None:
        return None, ""
    inv.lab.progress("cutting the module out of the network")
    found: tuple[ModuleBeside | None, str] = point.load()(inv, evidence, nodes, local)
    return found
