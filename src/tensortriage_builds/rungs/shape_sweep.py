"""At which shapes does it fail? The deployed target on one feed for every combination of the requested sizes.

Engines pick other kernels for other shapes, so a model may fail at batch 8 and pass at batch 1. Every shape is run,
whatever happens at the others; one that fails is diagnosed as if it had been given as data.
"""

from tensortriage.diagnose.sdk import (
    FAILURES,
    OBSERVED,
    Answer,
    Conclusion,
    EngineError,
    Evidence,
    Feed,
    FeedResult,
    Findings,
    Investigation,
    Outcome,
    OutcomeKind,
    ShapeRow,
    Unsound,
    VerdictKind,
    beyond_format,
    deployed,
    has_nan,
    judge,
    output_floors,
    rows_in_words,
    run_command,
    rung,
)

QUESTION = "at which shapes does it fail?"
UNASKED = "not-asked"
REFERENCE_FAILED = "reference-failed"
"""Outcomes of a shape besides the words of verdicts and ``wrong``."""


@rung(
    QUESTION,
    reads=("results",),
    gives=("results", "shapes"),
    cost="a run on every shape",
    after="which tensors can the format not hold?",
)
def sweep(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Ask every shape of the sweep: a row for each, and the results of those that gave comparable outputs.

    Where the target gave none on the feeds, that is the failure, and no shape is looked into.
    """
    if not inv.question.sweep:
        return None
    rows: list[ShapeRow] = []
    results: list[FeedResult] = []
    floors = None
    for shaped in inv.question.sweep:
        if inv.lab.budget.left <= 0.0:
            rows.append(ShapeRow(shaped.label, UNASKED, message="the budget is spent"))
            continue
        row = broken(inv, shaped.label, shaped.feed)
        if row is None:
            floors = floors or output_floors(inv)
            figures = deployed(inv, shaped.feed)
            results.append(judge(inv, shaped.feed, figures, floors))
            row = row_of(inv, shaped.label, results[-1])
        rows.append(row)
    inv.record.answered(QUESTION, rows_in_words(rows), shapes=rows)
    known = (*evidence.results, *results) if evidence.results else ()
    return Answer(findings=Findings(shapes=tuple(rows), results=known))


def broken(inv: Investigation, label: str, feed: Feed) -> ShapeRow | None:
    """Return the row of a shape at which there is nothing to compare; None when there is."""
    try:
        golden = inv.golden.outputs(feed)
    except EngineError as error:
        return ShapeRow(label, REFERENCE_FAILED, message=error.message)
    if lost := [name for name in golden.names() if has_nan(golden[name])]:
        return ShapeRow(label, REFERENCE_FAILED, message=f"output '{lost[0]}' of the reference holds NaN")
    try:
        deployed(inv, feed)
    except Unsound as problem:
        return ShapeRow(label, VerdictKind.COMPARISON_UNSOUND.value, message=str(problem))
    except EngineError as error:
        inv.lab.drop(inv.question.target, inv.model)
        outcome = Outcome.of(error)
        if outcome.kind is OutcomeKind.HANG:
            inv.lab.budget.check()
        return ShapeRow(label, FAILURES[outcome.kind].value, message=outcome.message)
    return None


def row_of(inv: Investigation, label: str, result: FeedResult) -> ShapeRow:
    """Return the row of a shape whose outputs were compared."""
    name, error, ratio = result.worst_output()
    word = "match" if result.passes else "wrong" if beyond_format(inv, result) else "rounding"
    return ShapeRow(label, word, output=name, error=error, floor_ratio=ratio)


@rung(
    "does the target run at every shape?",
    reads=("shapes",),
    cost="nothing new",
    after="can the reference's outputs prove anything?",
    ends=(
        VerdictKind.BUILD_FAILED,
        VerdictKind.ENGINE_CRASH,
        VerdictKind.ENGINE_HANG,
        VerdictKind.COMPARISON_UNSOUND,
    ),
)
def broken_shape(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Return the verdict on the first shape at which the target gives nothing to compare; None when there is none."""
    row = next((row for row in evidence.shapes if row.fails and row.outcome != "wrong"), None)
    if row is None:
        return None
    return Conclusion(
        VerdictKind(row.outcome),
        OBSERVED,
        f"{inv.question.target} fails at {row.shape}: {row.message}",
        next=[run_command(inv.question)],
    )
