"""Words about functions as the target computes them; see `tensortriage.diagnose.measurements.function_pieces`."""

from collections.abc import Sequence

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.function_pieces import may_round_inside
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired
from tensortriage.diagnose.rungs.rung import Answer
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.values.text import error_size, over_floor

FUSED = "does rounding also explain functions that are fused with their operands?"
"""For NPUs, whose compilers fuse on behind the plan that they report."""

MOST_NAMED = 8
"""Most operators of a piece that a message names."""


def coarse_at_most(inv: Investigation, evidence: Evidence, ratios: Sequence[float | None] = ()) -> bool:
    """Return whether the outputs and some pieces are within healthy kernels' error: then no fusion is at fault."""
    result = evidence.worst_feed
    outputs = [ratio_of(error, result.floors.target.get(name)) for name, error in result.errors.items()]
    known = [ratio for ratio in (*outputs, *ratios) if ratio is not None]
    return bool(known) and may_round_inside(inv, known)


def coarse_words(inv: Investigation) -> str:
    """Return how far off that is."""
    return (
        f"more than rounding results to {inv.precision.value} costs, and no more than a kernel that also rounds or "
        f"approximates inside may ({MATCH_FACTOR:g}x)"
    )


def wrong_when_fused(inv: Investigation, pieces: Sequence[Wired]) -> Answer | None:
    """Record which pieces around a function no freedom explains, and return them as a finding; None without any."""
    wrong = tuple(piece for piece in pieces if piece.wrong)
    if not wrong:
        return None
    inv.record.answered(FUSED, f"no: {words_of_wrong(inv, wrong)}", **facts_of_wrong(wrong))
    return Answer(findings=Findings(wrong_together=wrong))


def words_of_pieces(inv: Investigation, pieces: Sequence[Wired]) -> str:
    """Return the choices in pieces: ``Div + Erf + Mul as one: approximated function (error up to 4.7e-04)``.

    Empty for none.
    """
    if not pieces:
        return ""
    errors_of: dict[tuple[str, str], list[float]] = {}
    for piece in pieces:
        for freedom, error in piece.taken.values():
            errors_of.setdefault((kinds_of(inv, piece), freedom.words), []).append(error)
    (kinds, words), errors = max(errors_of.items(), key=lambda item: max(item[1]))
    others = sum(map(len, errors_of.values())) - 1
    more = f", and so in {others} more pieces" if others else ""
    return f"{kinds} as one: {words} (error up to {error_size(max(errors))}{more})"


def words_of_wrong(inv: Investigation, wrong: Sequence[Wired]) -> str:
    """Return which piece is farthest beyond its floor: ``MatMul + Erf as one is off by 6.0e-03, 10x its floor``."""
    worst = max(wrong, key=lambda piece: piece.ratio)
    others = "is" if len(wrong) == 1 else f"(and {len(wrong) - 1} more pieces) are"
    error = error_size(max(worst.errors.values()))
    return f"{kinds_of(inv, worst)} as one {others} off by {error}, {over_floor(worst.ratio)}"


def facts_of_wrong(wrong: Sequence[Wired]) -> dict[str, object]:
    """Return the same as evidence of a step."""
    return {"pieces": [list(piece.nodes) for piece in wrong], "floor_ratios": [piece.ratio for piece in wrong]}


def kinds_of(inv: Investigation, piece: Wired) -> str:
    """Return the operators of a piece, those behind `MOST_NAMED` counted."""
    kinds = " + ".join(inv.model.graph.node(name).op_type for name in piece.nodes[:MOST_NAMED])
    return kinds + (f" + {len(piece.nodes) - MOST_NAMED} more" if len(piece.nodes) > MOST_NAMED else "")
