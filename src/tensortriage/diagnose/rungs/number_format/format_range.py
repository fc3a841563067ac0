"""Which values can the target's number format not hold? The question is about the model's own values.

The answer is no verdict: a value that does not fit need not matter. It names the ops to look at first.
"""

from collections.abc import Sequence

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import Excess, scanned
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.runs.analyses.ranges import RangeRow, Ranges
from tensortriage.values.dtype import Precision


@rung("which tensors can the format not hold?", gives=("ranges",), cost="nothing new")
def scan_ranges(inv: Investigation, _: Evidence) -> Answer:
    """Record which ops cannot work in the target's format, and which may not; only for formats narrower than fp32."""
    if inv.precision not in ROUNDED or inv.precision is Precision.INT8:
        return Answer()
    feed, word = inv.question.feeds[0], inv.precision.value
    rows = scanned(inv, feed)
    misfits = [(row, misfit) for row in rows for misfit in row.misfits_in(inv.precision)]
    cannot = [(row, misfit) for row, misfit in misfits if misfit.cannot]
    may = len({row.value for row, misfit in misfits if not misfit.cannot} - {row.value for row, _ in cannot})
    if cannot:
        row, misfit = cannot[0]
        number = len({row.value for row, _ in cannot})
        answer = f"{number} of {len(rows)} tensors: {described(row)} {misfit.words}"
    else:
        answer = f"none of {len(rows)} tensors is beyond it"
    inv.record.answered(
        f"what can {word} not hold?",
        answer + (f"; {may} more may lose precision" if may else ""),
        cannot=[f"{described(row)} {misfit.words}" for row, misfit in cannot[:12]],
        may=[f"{described(row)} {misfit.words}" for row, misfit in misfits if not misfit.cannot][:12],
        tensors=len(rows),
        feed=feed.name,
    )
    return Answer(findings=Findings(ranges=Ranges.of(rows, inv.precision, feed.name)))


def described(row: RangeRow) -> str:
    """Return how a tensor is called in a sentence."""
    return f"constant '{row.value}' of {row.op_type} '{row.node}'" if row.constant else f"{row.op_type} '{row.node}'"


def vanishing(rows: Sequence[RangeRow], precision: Precision) -> tuple[Excess, ...]:
    """Return the values and constants that a format turns into 0 or subnormals, those that are gone first."""
    found = [
        (misfit, Excess(row.value, row.node, row.op_type, row.max_abs, constant=row.constant, vanishes=misfit.words))
        for row in rows
        for misfit in row.misfits_in(precision)
        if misfit.slug.endswith("subnormal")
    ]
    return tuple(item for _, item in sorted(found, key=lambda each: not each[0].cannot))


def excesses(rows: Sequence[RangeRow], precision: Precision, *, sums: bool = False) -> tuple[Excess, ...]:
    """Return the values and constants beyond the largest number of a format; or sums on the way to values within."""
    what = "a sum on the way to its result" if sums else "its result"
    return tuple(
        Excess(
            row.value, row.node, row.op_type, (row.sum_bound or 0.0) if sums else row.max_abs, row.constant, what=what
        )
        for row in rows
        if any(
            each.slug.endswith("beyond-range") and each.slug.startswith("sum") is sums
            for each in row.misfits_in(precision)
        )
    )
