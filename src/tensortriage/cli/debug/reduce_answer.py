"""The progress of ``triage debug reduce``, its questions to the person at the terminal, and its result."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from tensortriage.cli.dialect import dialect
from tensortriage.cli.documents import print_document
from tensortriage.cli.progress import Teller
from tensortriage.cli.prompt import Reply
from tensortriage.reduce.commands.by_command import UndoError
from tensortriage.reduce.reduction_result import Reduction
from tensortriage.reduce.request import ReduceRequest
from tensortriage.search.problem import CandidateOutcome
from tensortriage.search.search_result import Progress
from tensortriage.search.statistics.repeats import CONFIDENCE
from tensortriage.values.serial import to_json
from tensortriage.values.text import count, duration, error_size, percent
from tensortriage.workflows.reduce import reduce

WORDS = {
    CandidateOutcome.SAME: "fails the same way",
    CandidateOutcome.OTHER: "fails in another way",
    CandidateOutcome.PASS: "passes",
    CandidateOutcome.UNRESOLVED: "unresolved",
}
MINIMALITY = {
    "one-minimal": "no node of it can be left out (each was tried)",
    "block-minimal": "no block of {size} nodes of it can be left out (each was tried)",
    "budget": "the smallest found so far; not shown to be minimal",
}


class ReduceTeller(Teller):
    """Prints the progress of a reduction: a line for every check, with the work that is left."""

    def checked(self, progress: Progress[str]) -> None:
        """Print a line for a check, with the work that is left."""
        step, verdict = progress.step, progress.verdict
        again = f", run {step.attempt + 1}" if step.attempt else ""
        known = ", known already" if step.cached else f", {duration(step.seconds)}"
        detail = f": {verdict.detail}" if verdict.detail else ""
        self.tell(
            f"check {progress.checks}: {count(step.items, 'node')}{again}, {WORDS[verdict.outcome]}{detail}{known}"
        )
        left = "" if progress.seconds_left is None else f", {duration(progress.seconds_left)}"
        self.progress(
            f"{len(progress.kept)} nodes left, {progress.checks} checks, {progress.cache_hits} known already, "
            f"about {progress.checks_left:.0f} to go{left}"
        )


class Asked:
    """The person at the terminal."""

    def judge(self, model: Path, nodes: int) -> bool | None:
        """Ask whether a model fails; see `tensortriage.reduce.request.Person`.

        Raises:
            UndoError: When the person takes back the last answer.
            KeyboardInterrupt: When the person quits.
        """
        reply = dialect().ask_about(model, nodes)
        if reply is Reply.UNDO:
            raise UndoError
        if reply is Reply.QUIT:
            raise KeyboardInterrupt
        return None if reply is Reply.SKIP else reply is Reply.FAIL


def reduce_and_show(request: ReduceRequest, *, as_json: bool) -> NoReturn:
    """Reduce with progress lines, show the result and exit."""
    teller = ReduceTeller(err=as_json)
    with contextlib.closing(teller):
        reduction = reduce(dataclasses.replace(request, person=Asked()), listener=teller)
    if as_json:
        print_document(to_json(reduction))
    teller.tell("\n".join(summary(reduction)))
    if reduction.stop == "interrupted":
        sys.exit(130)
    sys.exit(4 if reduction.verified is False else 0)


def summary(reduction: Reduction) -> Iterator[str]:
    """Yield the lines that end a reduction."""
    kept = reduction.kept
    yield ""
    yield f"{reduction.nodes_before} nodes -> {len(kept)}:"
    for node in kept[:20]:
        yield f"  {node.op_type} '{node.name}' -> " + ", ".join(f"'{name}'" for name in node.outputs if name)
        if origin := node.origin.beside(node.name):
            yield f"    from {origin}"
    if len(kept) > 20:
        yield f"  ... and {len(kept) - 20} more"
    if reduction.local is not None:
        yield f"failure: {reduction.local.describe()}" + _in_the_whole(reduction)
    else:
        yield f"failure: {reduction.signature or 'as reported by you'}"
    yield "minimal: " + _minimal(reduction)
    if reduction.failed_runs < reduction.runs:
        yield f"the fault is intermittent: failed in {reduction.failed_runs} of {reduction.runs} runs"
    for opened in reduction.opened:
        yield f"{'opened' if opened.done else 'not opened'}: {opened.op_type} '{opened.node}': {opened.detail}"
    for shrunk in reduction.shrunk:
        yield f"{shrunk.what}: {shrunk.detail}"
    for other in reduction.others:
        where = f", in {other.path} of the case" if other.path else ""
        yield f"also found: {count(other.nodes, 'node')} fail in another way ({other.signature}){where}"
    yield "written: " + ", ".join(f"{path} ({what})" for what, path in reduction.files.items())
    if reduction.verified is not None:
        why = f": {reduction.otherwise}" if reduction.otherwise else ""
        again = "the result failed again in a fresh process"
        yield again if reduction.verified else f"the result did NOT fail again in a fresh process{why}"
    if reduction.stop == "interrupted":
        yield "interrupted: run the same command to resume"
    elif reduction.stop != "finished":
        yield "out of budget: run the same command with a larger budget to resume"
    confirmed = f" and {reduction.repeats} that confirm them" if reduction.repeats else ""
    yield (
        f"{count(reduction.checks, 'check')}{confirmed} of {count(reduction.candidates, 'piece')}, "
        f"{reduction.cache_hits} known already, {duration(reduction.seconds)}"
    )


def _minimal(reduction: Reduction) -> str:
    """Return how small the result was shown to be, and how surely; "not shown" for one that did not fail again."""
    words = MINIMALITY[reduction.minimality].format(size=reduction.block_items)
    if reduction.verified is False:
        return "not shown: the result did not fail again"
    untold = sum(node.without == CandidateOutcome.UNRESOLVED.value for node in reduction.kept)
    if reduction.minimality != "budget" and untold:
        words += f"; unknown for {count(untold, 'node')}"
    if reduction.confidence is None or reduction.minimality == "budget":
        return words
    if reduction.confidence < CONFIDENCE - 0.005:
        return f"not shown with {percent(CONFIDENCE)} confidence, only with {percent(reduction.confidence)}: {words}"
    again = "" if reduction.failed_runs < reduction.runs else ", even if the fault is intermittent"
    return f"{words}; with {percent(reduction.confidence)} confidence{again}"


def _in_the_whole(reduction: Reduction) -> str:
    failure = reduction.failure
    if failure is None or not failure.kind.numeric or not failure.output:
        return ""
    return f"; in the whole model '{failure.output}' is wrong by {error_size(failure.influence)} on {failure.sample}"
