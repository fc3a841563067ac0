"""Consistency: is an engine at one with itself? Rows that should be equal and are not need no reference."""

import dataclasses
from collections.abc import Callable, Iterator

from tensortriage.api import Feed, Model
from tensortriage.envelope.sdk import Lab, Rows, another_feed, batch_axes, feeds_that_run, gather_rows, usable
from tensortriage.sdk import DataError, UsageError
from tensortriage_steps.consistency.masks import masked_relation
from tensortriage_steps.consistency.relations import ROWS, ClaimKind, EqualityClaim, row_relations
from tensortriage_steps.consistency.request import ConsistencyRequest
from tensortriage_steps.consistency.self_check import ClaimOutcome, SelfAnswer, SelfCheck

CONSISTENCY_FORMAT = "tensortriage.consistency/1"


@dataclasses.dataclass(frozen=True, slots=True)
class ConsistencyReport:
    """Findings of the check.

    Attributes:
        model: The file.
        target: The engine.
        rows: Rows of the batch; 0 where the model has none to compare.
        made_up_rows: How many of them were made up.
        inputs: ``real`` or ``random``.
        answers: One per relation, in the order of the questions.
        unasked: Reasons for skipped relations; empty when all were checked.
    """

    model: str
    target: str
    rows: int
    made_up_rows: int
    inputs: str
    answers: tuple[SelfAnswer, ...]
    unasked: tuple[str, ...] = ()
    format: str = CONSISTENCY_FORMAT

    @property
    def broken(self) -> tuple[SelfAnswer, ...]:
        """The relations that the engine breaks, or fails at."""
        bad = (ClaimOutcome.BROKEN.value, ClaimOutcome.REFUSED.value)
        return tuple(answer for answer in self.answers if answer.outcome in bad)

    @property
    def exit_code(self) -> int:
        """1 when the engine contradicts itself, 4 when nothing about rows could be claimed, else 0."""
        if self.broken:
            return 1
        about_rows = [answer for answer in self.answers if not ClaimKind(answer.relation).whole]
        return 0 if any(answer.outcome == ClaimOutcome.HOLDS.value for answer in about_rows) else 4


def check_consistency(
    request: ConsistencyRequest, *, say: Callable[[str], None] = lambda text: None
) -> ConsistencyReport:
    """Put every relation that the model has to an engine.

    Raises:
        TriageError: For bad input, an unknown engine, or an engine that is not usable here.
        EngineError: When the engine fails on the plain batch, or the model cannot be evaluated.
    """
    spec = usable(request.target, limits=request.limits)
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    unasked: list[str] = []
    answers: list[SelfAnswer] = []
    with Lab(limits=request.limits, progress=say) as own:
        lab = own.remembering
        samples = feeds_that_run(request.feeding, model, lab)
        rows = _rows(model, samples, request, unasked)
        check = SelfCheck(lab, model, spec)
        for relation in _relations(model, samples, rows, request, check, unasked):
            say(relation.question)
            answers.append(check.ask(relation))
    return ConsistencyReport(
        str(request.model),
        str(spec),
        len(rows.rows) if rows else 0,
        rows.made_up if rows else 0,
        samples[0].origin.value,
        tuple(answers),
        tuple(unasked),
    )


def _rows(model: Model, samples: tuple[Feed, ...], request: ConsistencyRequest, unasked: list[str]) -> Rows | None:
    """Return the rows that batches are composed of; None where the model has none to compare."""
    axes = batch_axes(model.inputs, request.batch_dimension)
    if axes is None:
        unasked.append("rows: the model takes one row at a time; leave its batch open to compare some")
        return None
    own = axes.rows_in(samples[0])
    if not own:
        raise DataError(
            f"the inputs of {samples[0].name} do not have one number of rows in common",
            slug="batch-sizes-differ",
            cure="name the dynamic dimension that is the batch with --batch-dimension",
        )
    if axes.fixed is not None and request.rows not in (None, axes.fixed):
        raise UsageError(
            f"the model takes {axes.fixed} rows, not {request.rows}",
            slug="batch-fixed",
            cure="leave out --rows",
        )
    found = gather_rows(model, samples, axes, axes.fixed or request.rows or max(ROWS, own))
    if len(found.rows) < 2:
        unasked.append("rows: there is one row, and none can be made up; give more with --inputs")
        return None
    return found


def _relations(
    model: Model, samples: tuple[Feed, ...], rows: Rows | None, request: ConsistencyRequest, check: SelfCheck,
    unasked: list[str],
) -> Iterator[EqualityClaim]:  # fmt: skip
    base = samples[0] if rows is None else rows.batch(range(len(rows.rows)), f"{len(rows.rows)} rows")
    if rows is not None:
        yield from row_relations(rows)
        if rows.axes.fixed is not None:
            unasked.append(f"other batch sizes: the model takes {rows.axes.fixed} rows")
    masked = masked_relation(base)
    if masked is not None:
        yield masked
    else:
        unasked.append("padding: no input marks the hidden positions")
    yield from check.whole_claims(
        base, another_feed(model, base, samples), unasked, streams=request.streams, threads=True
    )
