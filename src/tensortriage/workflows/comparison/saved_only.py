"""Comparing saved outputs with each other, without any model.

Without the model neither the cost of rounding is known, nor whether the reference computes the model. So outputs are
judged by tolerances alone, and the result notes that the reference was not judged.
"""

from collections.abc import Sequence

import numpy as np

from tensortriage.compare.comparison import Row
from tensortriage.compare.judgement.tolerance import EveryTolerance, PolygraphyTolerance, Tolerance, check_names
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure_many
from tensortriage.errors import DataError, UsageError
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.outcome import OK
from tensortriage.workflows.common.output_selection import matching
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.decided_outputs import row_of
from tensortriage.workflows.comparison.pairing import Gathered, check_compatible, flat, paired
from tensortriage.workflows.comparison.participants import Arrays, Recorder, Saved

UNKNOWN = "unknown"
"""Where the inputs of saved outputs came from."""


class SavedComparison:
    """Compares saved outputs, iteration by iteration.

    Args:
        request: The user's request. Without a tolerance, Polygraphy's judges: 1e-5, absolute or relative.
        record: Sees every output before it is compared.
    """

    def __init__(self, request: CompareRequest, record: Recorder | None) -> None:
        if request.targets or request.reference or not request.saved:
            raise UsageError(
                "an engine is named, but no model to run", slug="model-needed",
                cure="name the MODEL, or give saved outputs alone: --load-outputs FILE FILE",
            )  # fmt: skip
        self._request = request
        self._reference, *self._targets = request.saved
        self._tolerances: Sequence[Tolerance] = request.tolerances or [PolygraphyTolerance()]
        self._record = record
        self._gathered = Gathered(request.validate)

    def go(self) -> CompareResult:
        """Compare everything.

        Raises:
            UsageError: For a choice of outputs that only a model can answer (``choice-needs-model``).
            DataError: When files hold different numbers of iterations (``results-too-few``), or outputs cannot be
                paired.
        """
        if self._request.outputs.by_type:
            raise UsageError(
                "--onnx-outputs-by-type needs the operators of a model, and no model is given",
                slug="choice-needs-model",
                cure="name the MODEL, or name the outputs: --onnx-outputs NAME...",
            )  # fmt: skip
        count = self._iterations()
        feeds: dict[str, str] = {}
        for number in range(count):
            feed = f"iteration {number}"
            feeds[feed] = UNKNOWN
            self._iteration(number, feed)
            if self._request.fail_fast and self._gathered.failed:
                break
        return CompareResult(
            reference=self._reference.name,
            targets=tuple(target.name for target in self._targets),
            feeds=feeds,
            observation="deployed",
            moved={},
            comparisons=self._gathered.comparisons(self._reference.name),
            invalid=tuple(self._gathered.invalid),
            task_metrics={},
            outcomes={who.name: OK for who in (self._reference, *self._targets)},
            unjudged="no model was given" if self._targets else "",
        )

    def _iterations(self) -> int:
        count = len(self._reference.results)
        for target in self._targets:
            if len(target.results) != count:
                raise DataError(
                    f"'{target.name}' holds {len(target.results)} iterations, '{self._reference.name}' {count}",
                    slug="results-too-few",
                    cure="compare results that were made from the same inputs",
                )
        return count

    def _iteration(self, number: int, feed: str) -> None:
        reference = self._chosen(self._reference, number)
        if not number:
            check_names(self._tolerances, reference, strict=self._request.strict)
        self._gathered.check(self._reference.name, feed, reference)
        for target in self._targets:
            self._pair(target, feed, reference, self._chosen(target, number))

    def _chosen(self, saved: Saved, number: int) -> dict[str, np.ndarray]:
        """Return the outputs of one iteration that are compared."""
        found, choice = dict(saved.results[number]), self._request.outputs
        if self._record is not None:
            self._record(saved.name, number, found)
        names = [*found]
        wanted = set(names) if not choice.mark or choice.is_everything else matching(choice.mark, names)
        wanted -= matching(choice.exclude, names)
        chosen = {name: array for name, array in found.items() if name in wanted}
        return self._request.postprocess(chosen) if self._request.postprocess else chosen

    def _pair(self, target: Saved, feed: str, reference: Arrays, outputs: Arrays) -> None:
        pair = paired((self._reference.name, target.name), reference, outputs)
        check_compatible(pair, reference, target.name, flatten=self._request.flatten)
        metrics = dict(measure_many((name, *flat(array, pair.outputs[name])) for name, array in reference.items()))
        rows = [self._row(name, metrics[name], reference[name], pair.outputs[name]) for name in reference]
        self._gathered.add(target.name, feed, rows, pair.only_target, pair.renamed)
        self._gathered.check(target.name, feed, pair.outputs)

    def _row(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Row:
        judgement = EveryTolerance(self._tolerances).judge(name, metrics, reference, target)
        return row_of(name, None, metrics, judgement, None)
