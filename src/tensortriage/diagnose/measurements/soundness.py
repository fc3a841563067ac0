"""Why outputs cannot be compared, and the verdict for each engine failure.

A verdict about an engine is worthless where there is no answer, or one with other outputs, shapes or element types.
"""

import re
from collections.abc import Mapping

import numpy as np

from tensortriage.compare.reference_checks import is_constant
from tensortriage.diagnose.measurements.guilty_passes import guilty_passes
from tensortriage.diagnose.measurements.suggested_commands import reduce_command, run_command
from tensortriage.diagnose.state.confidence import OBSERVED, SILENT_REFERENCE
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.base import LIMIT_REACHED
from tensortriage.engines.capabilities import NamesPasses, OffersLadder, VariesBuilds
from tensortriage.engines.registry import resolve
from tensortriage.errors import EngineError, EngineMissing, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.oddities import oddities
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.runs.analyses.refused_node import Refused
from tensortriage.runs.outcome import Outcome, OutcomeKind
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.text import larger_limit

BUILDS_WITH_THE_REST = 2.0
"""Rest of the budget, in builds, that one more build needs: itself and the questions after it."""


def affords(inv: Investigation, builds: float) -> bool:
    """Return whether the rest of the budget suffices for this many builds, each as long as the target's longest."""
    return inv.lab.budget.left >= builds * inv.lab.tally.longest_build(inv.question.target.name)


FAILURES = {
    OutcomeKind.BUILD_FAILED: VerdictKind.BUILD_FAILED,
    OutcomeKind.RUN_FAILED: VerdictKind.ENGINE_CRASH,
    OutcomeKind.CRASH: VerdictKind.ENGINE_CRASH,
    OutcomeKind.OUT_OF_MEMORY: VerdictKind.ENGINE_CRASH,
    OutcomeKind.HANG: VerdictKind.ENGINE_HANG,
}
"""The verdict that each failure of the target stands for."""

WORDS = {
    OutcomeKind.BUILD_FAILED: "refuses to build the model",
    OutcomeKind.RUN_FAILED: "builds the model but fails to run it",
    OutcomeKind.CRASH: "crashes",
    OutcomeKind.OUT_OF_MEMORY: "runs out of memory",
    OutcomeKind.HANG: "exceeds its time limit",
}


MOST_NAMED = 5
"""Ops that a verdict takes from an engine's message at most; an engine that lists more repeats its input."""


def failed(inv: Investigation, error: EngineError, feed: Feed) -> Conclusion:
    """Return the verdict for a target that could not be built or run at all; the ops that it names are the culprits.

    If a refusal names no node, the node with which it begins is searched. Safer options with which the target runs are
    reported.
    """
    outcome = Outcome.of(error)
    if outcome.kind is OutcomeKind.HANG:
        inv.lab.budget.check()  # what ended it may be the budget, not the time limit
    limit = inv.question.limits.memory_bytes
    if error.slug == LIMIT_REACHED and limit is not None:
        return _beyond_the_limit(inv, error, limit)
    kind = FAILURES[outcome.kind]
    summary = f"{inv.question.target} {WORDS[outcome.kind]}: {outcome.message}"
    named = [
        Culprit(node.name, node.op_type, node.outputs[0], reason=f"{inv.question.target.name} names it in its message")
        for node in nodes_in(outcome.message, inv.model.graph)[:MOST_NAMED]
    ]
    if not named and outcome.kind is OutcomeKind.BUILD_FAILED and (node := _refused(inv, outcome, feed)):
        summary += f"; the refusal begins with {node.op_type} '{node.name}'"
        reason = "the refusal begins here: everything before it builds"
        named = [Culprit(node.name, node.op_type, node.outputs[0], reason=reason)]
    commands = [run_command(inv.question)]
    if kind is not VerdictKind.ENGINE_HANG:
        commands.insert(0, reduce_command(inv.question))
        if works := _runs_with(inv, feed):
            words, options = works
            summary += f"; it runs with {words}"
            if passes := _refused_because_of(inv, feed):
                words, options = passes
                summary += f", and {words}"
            commands.insert(
                0, triage_command(inv.question, "diagnose", "--target", str(inv.question.target.with_options(options)))
            )
    return Conclusion(kind, OBSERVED, summary, culprits=named, next=commands)


def _runs_with(inv: Investigation, feed: Feed) -> tuple[str, Mapping[str, str]] | None:
    """Return the options nearest to the given ones with which the target runs, in words and whole; None for none.

    None as well where it also runs with the given ones, and fails now and then: one run proves nothing about other
    options.
    """
    target = inv.question.target
    engine = resolve(target).engine
    rungs = engine.ladder(target.options)[:-1] if isinstance(engine, OffersLadder) else ()
    if not rungs or not affords(inv, BUILDS_WITH_THE_REST):
        return None

    if _runs(inv, feed, target.options) or not _runs(inv, feed, rungs[0][1]):
        return None
    return next((rung for rung in reversed(rungs) if _runs(inv, feed, rung[1])), None)


def _runs(inv: Investigation, feed: Feed, options: Mapping[str, str]) -> bool:
    target = inv.question.target
    try:
        inv.lab.outputs(target.with_options(options), inv.model, feed, what=f"trying safer options of {target}")
    except (EngineError, EngineMissing, UsageError):
        return False
    return True


def _refused_because_of(inv: Investigation, feed: Feed) -> tuple[str, Mapping[str, str]] | None:
    """Return the optimizer pass without which the target runs, in words, and the options without it; None for none."""
    options, engine = inv.question.target.options, resolve(inv.question.target).engine
    if not isinstance(engine, NamesPasses):
        return None
    path = inv.lab.workspace.file(inv.model)
    try:
        names = engine.passes(path, options)
    finally:
        inv.lab.workspace.release(path)
    guilty = guilty_passes(names, lambda absent: _runs(inv, feed, engine.without(options, absent)))
    for left_out in ((name,) for name in reversed(guilty)):
        if _runs(inv, feed, without := engine.without(options, left_out)):
            how = engine.leaving_out(left_out)
            return f"without the optimizer pass {left_out[0]}" + (f": {how}" if how else ""), without
    return None


def _refused(inv: Investigation, outcome: Outcome, feed: Feed) -> Node | None:
    def value(name: str) -> np.ndarray:
        return feed.tensors[name] if name in feed.tensors else inv.golden.of(feed)[name]

    return Refused(inv.model, inv.question.target, outcome, inv.golden.foreseen_specs(feed), value).node(inv.lab)


def _beyond_the_limit(inv: Investigation, error: EngineError, limit: int) -> Conclusion:
    """Return the verdict for a target that the user's memory limit ended; it names no culprit."""
    summary = f"the memory limit was reached, and nothing is known about the target's numbers: {error.message}"
    again = ("--memory-limit", larger_limit(limit), "--case", str(inv.lab.case.folder))
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        OBSERVED,
        summary,
        next=[triage_command(inv.question, "diagnose", "--target", str(inv.question.target), *again)],
    )


def nodes_in(message: str, graph: Graph) -> list[Node]:
    """Return the nodes that a message names, in the order of the message.

    A node is named where its name is a word of its own; an operator's name proves nothing, since messages name
    operators too. Where no node is named, its outputs count if the operator is named as well, as in OpenVINO's
    ``<Node(Mod): y>``.
    """
    operators = {node.op_type for node in graph.nodes}
    found = [
        (place.start(), node)
        for node in graph.nodes
        if node.outputs and node.name not in operators and (place := word(node.name, message))
    ] or [
        (place.start(), node)
        for node in graph.nodes
        for value in node.outputs
        if word(node.op_type, message) and (place := word(value, message, behind=r"(?<=[:'\"<(] )|(?<=[:'\"<(])"))
    ]
    return [node for _, node in sorted(found, key=lambda pair: pair[0])]


def word(name: str, text: str, *, behind: str = r"(?<![\w/])(?<!\w\.)") -> re.Match[str] | None:
    """Return where a text holds a name as a word of its own; None when nowhere, or for no name.

    Args:
        name: The name.
        text: The text.
        behind: A regular expression for the text before the name.
    """
    if not name or name not in text:  # a plain look is a hundred times faster
        return None
    return re.search(rf"(?:{behind}){re.escape(name)}(?![\w/]|\.\w)", text)


def builds_vary(inv: Investigation) -> bool | None:
    """Return whether two builds of the target may differ; None where the engine does not report it."""
    engine = resolve(inv.question.target).engine
    return engine.builds_vary(inv.question.target.options) if isinstance(engine, VariesBuilds) else None


def runs_vary(inv: Investigation) -> bool:
    """Return whether two runs of one build of the target may differ, as far as the engine reports it."""
    engine = resolve(inv.question.target).engine
    return not isinstance(engine, VariesBuilds) or engine.runs_vary(inv.question.target.options)


def is_silent(inv: Investigation) -> bool:
    """Return whether every output of the reference is empty or constant on every feed."""
    for feed in inv.question.feeds:
        golden = inv.golden.outputs(feed)
        outputs = [golden[spec.name] for spec in inv.model.outputs if spec.name in golden]
        if not outputs or not all(map(is_constant, outputs)):
            return False
    return True


def silent(inv: Investigation) -> Conclusion | None:
    """Return the verdict on outputs of a reference by which nothing can be proved; None for others."""
    if inv.question.tolerance is not None or not is_silent(inv):
        return None
    odd = [found.sentence for found in oddities(inv.question.feeds, inv.model.inputs)]
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        SILENT_REFERENCE,
        "every output of the reference is empty or constant on every feed, so that agreement proves nothing: "
        f"give inputs on which the model does something{f' ({odd[0]})' if odd else ''}",
        next=[triage_command(inv.question, "inspect data")] if inv.question.inputs_word == "real" else [],
    )
