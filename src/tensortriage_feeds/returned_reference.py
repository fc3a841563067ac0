"""Changes that a reference, a user's program, makes to the outputs of its network; then no op is to blame.

Where the target is a program too, and changes the same outputs, the difference between both is told as well: it is what
the user sees.
"""

import dataclasses

import numpy as np

from tensortriage.diagnose.sdk import (
    FED_OTHERWISE,
    OBSERVED,
    PLAIN,
    Conclusion,
    Evidence,
    Investigation,
    TriageError,
    VerdictKind,
    is_foreign,
    outside_envelope,
    rung,
    triage_command,
)
from tensortriage_feeds.returned import changes, cure_of, in_words, made_by_program

QUESTION = "does the reference return what the model computes?"


@rung(
    QUESTION,
    reads=("concluded", "results"),
    cost="a run of the model, and four of models that return constants, where a user's program is the reference",
    ends=(VerdictKind.COMPARISON_UNSOUND,),
    after="what is at fault?",
)
def reference_returned_otherwise(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Tell what a reference does to outputs, where it was found to be wrong."""
    found, reference, target = evidence.concluded, inv.question.reference, inv.question.target
    if found is None or found.kind is not VerdictKind.COMPARISON_UNSOUND or not evidence.results:
        return None
    worst = evidence.worst_feed
    if not is_foreign(reference.name) or found.confidence in (FED_OTHERWISE, OBSERVED):
        return None
    outside = list(outside_envelope(worst.floors, list(worst.metrics))) or list(worst.failing)
    if not outside:
        return None
    asked = inv.about(dataclasses.replace(inv.question, target=reference, reference=PLAIN))
    try:
        right = {name: np.asarray(array) for name, array in inv.lab.outputs(PLAIN, inv.model, worst.feed).items()}
        golden = inv.golden.outputs(worst.feed)
        given = {name: np.asarray(golden[name]) for name in right if name in golden}
        told = made_by_program(asked, worst.feed, right, given, outside)
        also, between = {}, {}
        if told and is_foreign(target.name):
            made = inv.deployed(worst.feed)
            failing = [name for name in worst.failing if name in told]
            between = changes(given, made, failing)
            also = changes(right, made, failing)
    except TriageError:
        return None
    inv.record.answered(QUESTION, f"no: {in_words(told)}" if told else "yes, as far as is known")
    if not told:
        return None
    summary = f"the reference {reference} changes what its network computes: {in_words(told)}"
    summary += f"; of the target {target}, {in_words(also)}" if also else ""
    summary += f"; between the two, {in_words(between, of='the reference')} in the target" if between else ""
    return dataclasses.replace(
        found,
        confidence=FED_OTHERWISE,
        summary=f"{summary}. Cure: {cure_of(told)}",
        culprits=(),
        next=[triage_command(inv.question, "diagnose", "--reference", str(PLAIN), "--target", str(target))],
    )
