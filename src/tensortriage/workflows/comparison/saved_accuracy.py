"""Saved comparisons, of Polygraphy's and of ours, in one form: the numbers without the tensors.

Two kinds of file hold such numbers: Polygraphy's accuracy results, and the document of ``triage run --json``. The
second is turned into the first, so that there is one form to judge again, and one to save.
"""

import dataclasses
import json
import math
from pathlib import Path

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.compare.run_result import RUN_FORMAT, CompareResult
from tensortriage.errors import DataError
from tensortriage.inputs.files.accuracy_results import (
    CLASSES,
    SIMPLE_METRICS,
    AccuracyEntry,
    AccuracyPair,
    AccuracyResult,
    read_accuracy,
)
from tensortriage.values import serial
from tensortriage.values.files import read_regular

SIMPLE = "OutputCompareResult"
_DEFAULTS = {"L2Result": 1e-5, "CosineSimilarityResult": 0.997, "SnrResult": 20.0}


@dataclasses.dataclass(frozen=True, slots=True)
class SavedAccuracy:
    """Saved comparisons.

    Attributes:
        results: One per comparison function.
        verdicts: Those whose stored verdicts stand when no limits are given.
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
        raise DataError(f"{path} is no file", slug="accuracy-missing", cure="give a file of --save-accuracy-results")
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
        result: What was compared.
        infinities_equal: Whether infinities of one sign on both sides are no error.
    """
    found = []
    for kind in (SIMPLE, *_DEFAULTS):
        pairs: dict[str, list[dict[str, AccuracyEntry]]] = {}
        for item in result.comparisons:
            rows = item.comparison.rows
            entries = {row.value: _entry(kind, row.metrics, row.judgement, infinities_equal) for row in rows}
            pairs.setdefault(item.comparison.target, []).append(entries)
        runners = ((target, result.reference) for target in pairs)  # The second one is the reference of ``simple``.
        found.append(AccuracyResult(tuple(AccuracyPair(names, tuple(pairs[names[0]])) for names in runners)))
    return tuple(found)


def _entry(kind: str, metrics: Metrics, judgement: Judgement, infinities_equal: bool) -> AccuracyEntry:
    bad = metrics.has_nan or metrics.nonfinite_mismatch or (
        metrics.inf_reference + metrics.inf_target > 0 and not infinities_equal
    )  # fmt: skip
    if kind == SIMPLE:
        values = (
            metrics.max_abs_error, metrics.max_rel_error, metrics.mean_abs_error, metrics.mean_rel_error,
            metrics.median_abs_error, None, metrics.p99_abs_error, None,
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
    return AccuracyEntry(kind, {name: math.nan if bad else value}, {"threshold": _DEFAULTS[kind]}, None)
