"""The verdict, written once: from the ladder's conclusion, and from all later findings."""

import dataclasses
import shlex
from collections.abc import Iterator, Sequence

from tensortriage.diagnose.climb import ClimbResult
from tensortriage.diagnose.measurements.dissection import Patterns
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.fusion.transformations import changes_precision
from tensortriage.diagnose.rungs.premises.training_mode import training_words
from tensortriage.diagnose.state.verdict import Culprit, ReproFacts, Verdict, rows_in_words
from tensortriage.engines.capabilities import NamesPasses
from tensortriage.engines.registry import resolve
from tensortriage.model.ir.graph import Graph
from tensortriage.report.verdict_words import headline
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.text import enumeration
from tensortriage.workflows.diagnosis.culprit_origins import with_origin
from tensortriage.workflows.diagnosis.found_after import FoundAfter

MOST_SENTENCES = 4
"""Findings reported for one tensor, the strongest ones."""


def verdict_of(end: ClimbResult, found: FoundAfter, *, graphs: Sequence[Graph] = (), sizes: str = "") -> Verdict:
    """Return the verdict, with the path and the cost so far.

    Args:
        end: The ladder's result.
        found: Later findings.
        graphs: Graphs with the modules of culprits, the user's model first.
        sizes: Sizes of the inputs that were made up, in words.
    """
    conclusion, evidence, inv = end.conclusion, end.evidence, end.investigation
    inputs = inv.question.inputs_word
    patterned = [_with_pattern(each, found.dissection.culprits) for each in conclusion.culprits]
    commands = tuple(_commands(end, found.repro))
    culprits = tuple(with_origin(each, graphs) for each in patterned)
    return Verdict(
        conclusion.kind.value,
        conclusion.confidence_on(inputs),
        "; ".join(filter(None, (conclusion.summary, *_clauses(evidence), *_cures(end), sizes))),
        culprits,
        inputs,
        inv.record.steps,
        commands,
        inv.record.cost,
        anatomy=tuple(found.dissection.output[:MOST_SENTENCES]),
        shapes=evidence.shapes,
        breakers=conclusion.breakers,
        remedy=found.remedy,
        repro=found.repro,
        sufficiency=found.sufficiency,
        accuracy=found.accuracy,
        fix=found.fix,
        headline=headline(conclusion.kind, culprits),
        allowed_by=conclusion.allowed_by,
        lost=conclusion.lost,
    )


def _clauses(evidence: Evidence) -> list[str]:
    """Return the clauses that hold with any conclusion."""
    shapes = f"fails {rows_in_words(evidence.shapes)}" if evidence.shapes else ""
    targets = f"of the two targets, {evidence.two_targets}" if evidence.two_targets else ""
    training = training_words(evidence.in_training)
    other_types = evidence.results[0].retyped if evidence.results else {}
    retyped = enumeration([f"output '{name}' {words}" for name, words in other_types.items()])
    clauses = (shapes, targets, training, evidence.exact_reference, evidence.shown_format, retyped)
    return [clause for clause in clauses if clause]


def _cures(end: ClimbResult) -> Iterator[str]:
    """Yield the optimizer passes whose absence cures a target, and how to leave them out, or else the options."""
    config, inv = end.evidence.configuration, end.investigation
    if config is None:
        return
    if config.disabled:
        engine = resolve(config.works).engine
        what = "pass" if len(config.disabled) == 1 else "passes"
        how = engine.leaving_out(config.disabled) if isinstance(engine, NamesPasses) else ""
        yield f"it is right without the optimizer {what} {' and '.join(config.disabled)}" + (f": {how}" if how else "")
    elif str(config.works) not in end.conclusion.summary and not changes_precision(inv, config):
        ours, works = inv.question.target.options, config.works.options
        other = [name for name in {**works, **ours} if works.get(name) != ours.get(name)]
        words = [f"{name} {works.get(name, 'unset')} instead of {ours.get(name, 'its default')}" for name in other]
        yield f"it is right with {enumeration(words)}" if words else ""


def _with_pattern(culprit: Culprit, patterns: Patterns) -> Culprit:
    """Return a culprit with the known error of its value."""
    found = patterns.get(culprit.value)
    if found is None:
        return culprit
    return dataclasses.replace(culprit, anatomy=found.sentences[:MOST_SENTENCES], effect=culprit.effect or found.effect)


def _commands(end: ClimbResult, repro: ReproFacts | None) -> list[str]:
    """Return the commands to run next: a working configuration comes first.

    Before that comes a repro that was confirmed, then its report; one of a single op cannot be reduced any more.
    """
    config, case = end.evidence.configuration, end.investigation.lab.case.folder
    question, commands = end.investigation.question, list(end.conclusion.next)
    if config is not None:
        commands.insert(0, triage_command(question, "diagnose", "--target", str(config.works)))
    if repro is None:
        return commands
    script = f"python {case / repro.folder / 'repro.py'}"
    if not repro.confirmed:
        return [*commands, script]
    if len(repro.nodes) == 1:
        commands = [command for command in commands if not command.startswith("triage debug reduce ")]
    return [script, f"triage report {shlex.quote(str(case))} --format markdown -o issue.md", *commands]
