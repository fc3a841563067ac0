"""What will the target's number format not hold? Asked of one reference run, before anything is built for the target.

The answer is no verdict: a value that does not fit need not matter. It names the ops to look at first.
"""

import dataclasses
from collections.abc import Sequence

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.nonfinite import Excess
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import ROUNDED
from tensortriage.inputs.feed import Feed
from tensortriage.runs.ranges import USUAL, RangeRow, Ranges, largest_sum, range_scan
from tensortriage.values.dtype import Precision


@dataclasses.dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a range scan, as kept in a case."""

    rows: tuple[RangeRow, ...]


def scanned(inv: Investigation, feed: Feed) -> tuple[RangeRow, ...]:
    """Return the range scan of the reference's run on a feed."""

    def ask() -> Scan:
        inv.progress("checking every tensor against the range of the number formats")
        limit = largest_sum(inv.precision)
        return Scan(range_scan(inv.model, inv.golden(feed), feed.tensors, formats=formats, beyond=limit))

    formats = tuple(dict.fromkeys((*USUAL, inv.precision)))
    key = inv.key(inv.question.reference, inv.model, feed, "range scan", [precision.value for precision in formats])
    return inv.case.checks.remember(key, "what number formats cannot hold", Scan, ask).rows


@rung("which tensors can the format not hold?", gives=("ranges",))
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
    inv.answered(
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


def excesses(rows: Sequence[RangeRow], precision: Precision) -> tuple[Excess, ...]:
    """Return the values and constants beyond the largest number of a format."""
    return tuple(
        Excess(row.value, row.node, row.op_type, row.max_abs, constant=row.constant)
        for row in rows
        if any(
            misfit.slug.endswith("beyond-range") and misfit.slug[:3] != "sum" for misfit in row.misfits_in(precision)
        )
    )
