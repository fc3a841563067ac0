"""The outputs in a table of the report: each from the feed on which it is worst, with what allows its error."""

from tensortriage.compare.judgement.relative_error import RELATIVE_RMS, sqnr_db
from tensortriage.compare.judgement.within import is_lost
from tensortriage.diagnose.measurements.outputs import FeedResult, noise_of, parts_of
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.layer_rows import BY_FLOOR, BY_TOLERANCE, OutputRow
from tensortriage.diagnose.state.verdict import Verdict


def output_rows(results: tuple[FeedResult, ...], inv: Investigation, verdict: Verdict) -> tuple[OutputRow, ...]:
    """Return one row per model output, and per part of one, from the feed on which that is worst.

    Args:
        results: Outputs on every feed.
        inv: The investigation.
        verdict: The verdict, whose explanations allow the errors that fp32 engines would not have.
    """
    rows: list[OutputRow] = []
    plainly = BY_FLOOR if inv.question.tolerance is None else BY_TOLERANCE
    outputs = {part.name: part.output for part in parts_of(inv, results[0].feed)} if results else {}
    for name in results[0].figures if results else ():
        result = max((r for r in results if name in r.errors), key=lambda r: (not r.within[name], r.errors[name]))
        metrics, spec = result.figures[name], inv.golden.outputs(result.feed).spec(outputs.get(name, name))
        is_rms, exact = result.measure(name) == RELATIVE_RMS, metrics.exact
        decided = result.decided is not None and name in result.decided.behind
        plain = result.within[name] and not (verdict.lost and is_lost(result.errors[name]))
        rows.append(
            OutputRow(
                name=name,
                dtype=spec.dtype.label if spec.dtype else "",
                shape=(metrics.count,) if name in outputs else spec.sizes,
                sqnr_db=sqnr_db(result.errors[name]) if is_rms else None,
                max_abs_error=None if decided and exact else float(metrics.max_abs_error),
                relative_rms_error=result.errors[name] if is_rms else None,
                measure=result.measure(name),
                figure=result.errors[name],
                words=result.in_words(name, noise_of(inv)),
                needs_sentence=decided or not is_rms,
                floor=result.floors.fp32.get(name) if is_rms else None,
                within=plain or (bool(verdict.allowed_by) and not verdict.lost),
                allowed_by=plainly if plain else "+".join(verdict.allowed_by),
                nonfinite_target=metrics.nonfinite_mismatch,
                feed=result.feed.name,
                predicted=result.floors.target.get(name) if is_rms else None,
                limit=result.floors.limit(name, metrics.count).error if is_rms and plainly == BY_FLOOR else None,
            )
        )
    return tuple(rows)
