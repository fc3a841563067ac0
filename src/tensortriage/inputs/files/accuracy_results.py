"""Polygraphy's saved accuracy results: the numbers of every comparison, without the tensors.

One document holds one result per comparison function (``simple``, ``l2``, ...); each has, per pair of runners and per
iteration, one entry per output. An entry keeps its metrics and the limits it was judged by, so that it can be judged
again by others. Written by ``--save-accuracy-results`` of Polygraphy 0.53 and of ours.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.files.json_view import open_json
from tensortriage.inputs.files.polygraphy import CLASS_KEY
from tensortriage.inputs.files.polygraphy_write import replacing

SIMPLE_METRICS = tuple(
    f"{stat}_{kind}" for stat in ("max", "mean", "median", "quantile") for kind in ("absdiff", "reldiff")
)
CLASSES: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType({
    "OutputCompareResult": (SIMPLE_METRICS, "SimpleThreshold"),
    "L2Result": (("l2_norm",), "L2Threshold"),
    "CosineSimilarityResult": (("cosine_similarity",), "CosineSimilarityThreshold"),
    "PsnrResult": (("psnr",), "PsnrThreshold"),
    "SnrResult": (("snr",), "SnrThreshold"),
    "PerceptualMetricsResult": (("lpips",), "LpipsThreshold"),
})  # fmt: skip
"""Polygraphy's class of an entry to the metrics it holds and the class of its limits."""
_LIMITS = {"SimpleThreshold": ("check_error_stat", "atol", "rtol")}
_ONE_LIMIT = ("threshold",)
AVERAGE, PER_SAMPLE = "average", "per_sample"


@frozen_dataclass
class AccuracyEntry:
    """Measurements of one output in one iteration.

    Attributes:
        kind: Polygraphy's class, a key of `CLASSES`; empty for a bare verdict without numbers.
        metrics: Metric to value; None where it was not computed.
        limits: Its limits: ``check_error_stat``, ``atol``, ``rtol``, or ``threshold``.
        passed: The stored verdict, where it does not follow from the numbers; else None.
    """

    kind: str
    metrics: Mapping[str, float | None]
    limits: Mapping[str, str | float]
    passed: bool | None


@frozen_dataclass
class AccuracyPair:
    """One pair of runners.

    Attributes:
        runners: Names of the first and the second runner. (Relative errors of ``simple`` are relative to the second;
            PSNR and SNR take the first as signal.)
        iterations: Output name to entry, per iteration.
    """

    runners: tuple[str, str]
    iterations: tuple[Mapping[str, AccuracyEntry], ...]


@frozen_dataclass
class AccuracyResult:
    """Result of one comparison function.

    Attributes:
        pairs: One per pair of runners.
        aggregation: ``per_sample``, or ``average`` when the mean of each metric over the iterations was judged.
    """

    pairs: tuple[AccuracyPair, ...]
    aggregation: str = PER_SAMPLE

    @property
    def kind(self) -> str:
        """The class of its entries; empty when they hold no numbers."""
        return next((entry.kind for entry in self.entries() if entry.kind), "")

    def entries(self) -> Iterator[AccuracyEntry]:
        """Yield every entry."""
        for pair in self.pairs:
            for iteration in pair.iterations:
                yield from iteration.values()


def read_accuracy(path: Path) -> tuple[AccuracyResult, ...]:
    """Read saved accuracy results.

    Raises:
        DataError: When the file is damaged (``json-invalid``) or holds something else (``accuracy-invalid``).
        OSError: When it cannot be read.
    """
    document = open_json(path).value()
    try:
        return tuple(_result(item) for item in _items(document, "AccuracyResults"))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path} holds no accuracy results: {_reason(error)}",
            slug="accuracy-invalid",
            cure="give a file of --save-accuracy-results; for saved inputs and outputs use triage inspect data",
        ) from error


def write_accuracy(path: Path, results: Sequence[AccuracyResult]) -> None:
    """Write accuracy results that Polygraphy's ``check accuracy`` and ours read.

    Raises:
        OSError: When the disk refuses.
    """
    document = _classed("AccuracyResults", {"lst": [_result_json(result) for result in results]})
    with replacing(path) as file:
        file.write(json.dumps(document, indent=4).encode())


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _items(value: Any, name: str) -> list[Any]:
    if not isinstance(value, dict) or value.get(CLASS_KEY) != name:
        found = value.get(CLASS_KEY) if isinstance(value, dict) else None
        raise ValueError(f"{name} expected, found {found or 'something else'}")
    return list(value["lst"])


def _result(value: Any) -> AccuracyResult:
    pairs = []
    for names, iterations in _items(value, "AccuracyResult"):
        first, second = names
        rows = tuple(map(_row, iterations))
        pairs.append(AccuracyPair((str(first), str(second)), rows))
    aggregation = value.get("aggregation", PER_SAMPLE)
    if aggregation not in (PER_SAMPLE, AVERAGE):
        raise ValueError(f"aggregation '{aggregation}'")
    return AccuracyResult(tuple(pairs), aggregation)


def _row(value: Any) -> Mapping[str, AccuracyEntry]:
    if not isinstance(value, dict):
        raise ValueError(f"an iteration is expected to map outputs to results, found {type(value).__name__}")
    return {str(name): _entry(entry) for name, entry in value.items()}


def _entry(value: Any) -> AccuracyEntry:
    if isinstance(value, bool):
        return AccuracyEntry("", {}, {}, value)
    if not isinstance(value, dict) or value.get(CLASS_KEY) not in CLASSES:
        raise ValueError(f"a result of unknown kind {value.get(CLASS_KEY) if isinstance(value, dict) else value!r}")
    kind = value[CLASS_KEY]
    fields, limits_class = CLASSES[kind]
    metrics = {field: None if value[field] is None else float(value[field]) for field in fields}
    given = value["thresholds"]
    limits = {field: _limit(field, given[field]) for field in _LIMITS.get(limits_class, _ONE_LIMIT)}
    passed = value.get("passed")
    return AccuracyEntry(kind, metrics, limits, passed if isinstance(passed, bool) else None)


def _limit(field: str, value: Any) -> str | float:
    return str(value) if field == "check_error_stat" else float(value)


def _classed(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, CLASS_KEY: name}


def _result_json(result: AccuracyResult) -> dict[str, Any]:
    pairs = [
        [list(pair.runners), [{name: _entry_json(entry) for name, entry in row.items()} for row in pair.iterations]]
        for pair in result.pairs
    ]
    return _classed("AccuracyResult", {"lst": pairs, "aggregation": result.aggregation})


def _entry_json(entry: AccuracyEntry) -> bool | dict[str, Any]:
    if not entry.kind:
        return bool(entry.passed)
    _, limits_class = CLASSES[entry.kind]
    fields: dict[str, Any] = {**entry.metrics, "thresholds": _classed(limits_class, entry.limits)}
    if entry.kind == "OutputCompareResult":
        fields["passed"] = entry.passed
    return _classed(entry.kind, fields)
