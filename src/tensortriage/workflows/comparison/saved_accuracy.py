"""Saved comparisons, of Polygraphy's and of ours, in one form: the numbers without the tensors.

Two kinds of file hold such numbers: Polygraphy's accuracy results, and the document of ``triage run --json``. The
second is turned into the first, so that there is one form to judge again, and one to save.
"""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.tolerance import (
    ErrorStat,
    PolygraphyTolerance,
    ThresholdKind,
    ThresholdTolerance,
    Tolerance,
    setting_for,
)
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.files.accuracy_results import (
    AVERAGE,
    CLASSES,
    SIMPLE_METRICS,
    AccuracyEntry,
    AccuracyPair,
    AccuracyResult,
    read_accuracy,
)
from tensortriage.report.run_result import RUN_FORMAT, CompareResult
from tensortriage.values import serial
from tensortriage.values.files import read_regular
from tensortriage.values.grouping import grouped

SIMPLE = "OutputCompareResult"
DEFAULT_THRESHOLDS = {"L2Result": 1e-5, "CosineSimilarityResult": 0.997, "PsnrResult": 30.0, "SnrResult": 20.0}
CLASS_OF = {
    ThresholdKind.L2: "L2Result", ThresholdKind.COSINE_SIMILARITY: "CosineSimilarityResult",
    ThresholdKind.PSNR: "PsnrResult", ThresholdKind.SNR: "SnrResult",
}  # fmt: skip
"""Polygraphy's class of the entries of each threshold function."""
_MEASURED = (SIMPLE, "L2Result", "CosineSimilarityResult", "SnrResult")


@frozen_dataclass
class SavedAccuracy:
    """Saved comparisons.

    Attributes:
        results: One per comparison function.
        verdicts: Stored verdicts that stand when no limits are given.
    """

    results: tuple[AccuracyResult, ...]
    verdicts: tuple[AccuracyResult, ...]


def load_accuracy(path: Path, *, infinities_equal: bool = False) -> SavedAccuracy:
    """Read Polygraphy's accuracy results, or the document of ``triage run --json``.

    Args:
        path: The file.
        infinities_equal: Whether infinities of one sign on both sides are no error (documents of ours only).

    Raises:
        DataError: When it does not exist (``accuracy-missing``) or holds something else (``accuracy-invalid``).
        StoreError: When a document of ours is damaged (``json-invalid``).
    """
    if not path.is_file():
        raise DataError(f"{path} is not a file", slug="accuracy-missing", cure="give a file of --save-accuracy-results")
    text = read_regular(path)
    if RUN_FORMAT.encode() not in text[:4096] + text[-4096:]:
        results = read_accuracy(path)
        return SavedAccuracy(results, results)
    try:
        document = dict(json.loads(text))
        document.pop("passed", None)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path} is damaged: {error}", slug="json-invalid", cure="save it again") from error
    results = accuracy_of(
        serial.from_json(json.dumps(document), CompareResult, source=str(path)), infinities_equal=infinities_equal
    )
    return SavedAccuracy(results, results[:1])


def accuracy_of(result: CompareResult, *, infinities_equal: bool = False) -> tuple[AccuracyResult, ...]:
    """Return a comparison as accuracy results: ``simple`` with the verdicts that were given, then l2, cosine and snr.

    A tensor with a NaN, or with infinities that do not match, has NaN for every error: no limit accepts it.

    Args:
        result: The comparison.
        infinities_equal: Whether infinities of one sign on both sides are no error.
    """
    found = []
    for kind in _MEASURED:
        pairs = grouped(
            (each.target, {row.value: _entry(kind, row.metrics, row.judgement, infinities_equal) for row in each.rows})
            for each in (item.comparison for item in result.comparisons)
        )
        runners = ((target, result.reference) for target in pairs)  # The second one is the reference of ``simple``.
        found.append(AccuracyResult(tuple(AccuracyPair(names, tuple(pairs[names[0]])) for names in runners)))
    return tuple(found)


def as_judged(
    result: CompareResult, tolerances: Sequence[Tolerance], names: Mapping[str, str]
) -> tuple[AccuracyResult, ...]:
    """Return a comparison as Polygraphy keeps it: one result per tolerance that judged, with its limits.

    Args:
        result: The comparison.
        tolerances: Its limits.
        names: How runners are called there.
    """
    measured = {each.kind: each for each in accuracy_of(result)}
    found = []
    for tolerance in tolerances:
        kind = SIMPLE if isinstance(tolerance, PolygraphyTolerance) else ""
        if isinstance(tolerance, ThresholdTolerance):
            kind = CLASS_OF[tolerance.kind]
        if kind in measured:
            pairs = tuple(
                AccuracyPair(
                    (names.get(pair.runners[0], pair.runners[0]), names.get(pair.runners[1], pair.runners[1])),
                    tuple(
                        {name: with_limits(name, entry, tolerance) for name, entry in row.items()}
                        for row in pair.iterations
                    ),
                )
                for pair in measured[kind].pairs
            )
            found.append(AccuracyResult(pairs))
    return tuple(found)


def averaged(results: Sequence[AccuracyResult]) -> tuple[AccuracyResult, ...]:
    """Return results judged by their mean over all iterations."""
    return tuple(dataclasses.replace(result, aggregation=AVERAGE) for result in results)


def with_limits(name: str, entry: AccuracyEntry, tolerance: Tolerance) -> AccuracyEntry:
    """Return an entry with the limits of a tolerance; a verdict stays where the numbers cannot give it again."""
    if not entry.kind:  # The shapes differed: there is no number, and no limit that would accept it.
        return entry
    if isinstance(tolerance, ThresholdTolerance):
        default = DEFAULT_THRESHOLDS[entry.kind]
        limit = default if tolerance.threshold is None else setting_for(tolerance.threshold, name, default)
        return dataclasses.replace(entry, limits={"threshold": limit}, passed=None)
    if not isinstance(tolerance, PolygraphyTolerance):
        return entry
    stat: ErrorStat = setting_for(tolerance.check_error_stat, name, ErrorStat.ELEMWISE)
    if stat is not ErrorStat.QUANTILE:  # which is computed there when it is judged
        metrics = {name: None if name.startswith("quantile") else value for name, value in entry.metrics.items()}
        entry = dataclasses.replace(entry, metrics=metrics)
    limits: dict[str, str | float] = {
        "check_error_stat": stat.value,
        "atol": setting_for(tolerance.atol, name, 1e-5),
        "rtol": setting_for(tolerance.rtol, name, 1e-5),
    }
    return dataclasses.replace(entry, limits=limits, passed=entry.passed if stat is ErrorStat.ELEMWISE else None)


def _entry(kind: str, metrics: Metrics, judgement: Judgement, infinities_equal: bool) -> AccuracyEntry:
    bad = metrics.has_nan or metrics.nonfinite_mismatch or (
        metrics.inf_reference + metrics.inf_target > 0 and not infinities_equal
    )  # fmt: skip
    if kind == SIMPLE:
        values = (
            metrics.max_abs_error, metrics.max_rel_error, metrics.mean_abs_error, metrics.mean_rel_error,
            metrics.median_abs_error, None if metrics.max_rel_error else 0.0, metrics.p99_abs_error, None,
        )  # fmt: skip
        limits: dict[str, str | float] = {"check_error_stat": "elemwise", "atol": 1e-5, "rtol": 1e-5}
        numbers = {
            name: math.nan if bad and value is not None else value
            for name, value in zip(SIMPLE_METRICS, values, strict=True)
        }
        return AccuracyEntry(kind, numbers, limits, judgement.within)
    (name,) = CLASSES[kind][0]
    value = {
        "l2_norm": metrics.l2_error, "cosine_similarity": metrics.cosine_similarity, "snr": metrics.sqnr_db,
    }[name]  # fmt: skip
    return AccuracyEntry(kind, {name: math.nan if bad else value}, {"threshold": DEFAULT_THRESHOLDS[kind]}, None)
