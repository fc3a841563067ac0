"""Does a piece, fed with golden values, fail on the target as the whole does? The engine itself answers.

Every piece is rebuilt for every question, so that faults of a build come and go as for the user, and runs on
all samples in their order, so that faults which depend on earlier runs can show. Several threads may ask at once: only
the target works for them side by side, and no answer depends on which comes first.
"""

import dataclasses
import functools
import math
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.output_judge import Compared, OutputJudge
from tensortriage.compare.judgement.within import carries_nothing_on
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError, EngineError, ModelError
from tensortriage.model.inspect.output_parts import OutputPart, output_parts, whole
from tensortriage.model.model import Model
from tensortriage.reduce.engines.propagation import carry
from tensortriage.reduce.engines.sample import GoldenSample
from tensortriage.reduce.failure import SAME_FAILURE, Failure, FailureKind, verdict_on
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.derived import Derived
from tensortriage.runs.outcome import Outcome
from tensortriage.search.problem import CandidateOutcome as CheckOutcome
from tensortriage.search.problem import OracleVerdict
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import error_size


@dataclasses.dataclass(kw_only=True)
class EngineOracle:
    """Answers from an engine in this process (or in the processes that an isolated engine brings with it).

    Attributes:
        pieces: Cuts candidates.
        samples: Feeds with golden values, at least one.
        reference: Engine that carries errors on to the outputs.
        target: Engine under suspicion.
        judge: Decides whether an output of the whole fails.
        lab: Asks engines, and keeps the failure of the whole; answers about a candidate are kept by the search.
        identity: Digest of all that answers depend on besides the piece.
        wanted: Only failures of this kind will do for the whole; None for any.
        expected: How the whole failed; None while that is being found out.
        closest: Largest error at an output of the whole that does not fail, and that output.
    """

    pieces: Pieces
    samples: tuple[GoldenSample, ...]
    reference: EngineSpec
    target: EngineSpec
    judge: OutputJudge
    lab: Lab
    identity: str
    wanted: FailureKind | None = None
    expected: Failure | None = None
    closest: tuple[float, str] = (0.0, "")
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def __call__(self, candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
        """Check a candidate."""
        try:
            failure = self.failure(self.pieces.nodes(candidate))
        except (ModelError, DataError) as error:
            return OracleVerdict(CheckOutcome.UNRESOLVED, detail=error.message)
        if self.expected is None:
            return self._verdict_on_the_whole(failure, attempt)
        return verdict_on(failure, self.expected)

    def _verdict_on_the_whole(self, failure: Failure | None, attempt: int) -> OracleVerdict:
        if failure is None and self.closest[1]:
            largest, output = self.closest
            words = (
                f"largest error: {error_size(largest)} at output '{output}', which is within its limit; --rtol sets "
                "another"
            )
            return OracleVerdict(CheckOutcome.PASS, detail=words)
        if failure is not None and self.wanted not in (None, failure.kind):
            return OracleVerdict(CheckOutcome.OTHER, failure.signature, failure.describe())
        if failure is not None:
            self._whole(attempt).keep(failure)
        return verdict_on(failure, None)

    def expect(self, runs: Sequence[OracleVerdict]) -> None:
        """Take the failure of the first run that failed as the one that is searched for."""
        first = next(attempt for attempt, verdict in enumerate(runs) if verdict.same)
        self.expected = self._whole(first).known()

    def _whole(self, attempt: int) -> Derived[Failure]:
        return self.lab.derived(Failure, "how does the whole fail?", self.identity, attempt)

    def failure(self, nodes: Sequence[str]) -> Failure | None:
        """Return how a piece fails; None when it does not.

        Raises:
            ModelError: When it cannot be cut out.
            DataError: When there is no golden value for one of its inputs.
        """
        with self._lock:
            piece = self.pieces.cut(nodes)
        failure, wrong = self._run(piece, nodes)
        if not wrong or self._is_same(failure):
            return failure
        with self._lock:
            marked = self.pieces.cut(nodes, marked=True)
        if len(marked.outputs) == len(piece.outputs):
            return failure
        # Too little continues from the ends; but other nodes also use what is wrong inside, and carry it on as well.
        other, _ = self._run(marked, nodes)
        return other if self._is_same(other) else failure

    def _is_same(self, failure: Failure | None) -> bool:
        return failure is not None and (self.expected is None or verdict_on(failure, self.expected).same)

    def _run(self, piece: Model, nodes: Sequence[str]) -> tuple[Failure | None, bool]:
        """Return how a piece fails, and whether anything in its results is wrong beyond rounding."""
        feeds = [_feed(sample, piece.inputs) for sample in self.samples]
        found: list[Failure] = []
        wrong, name = False, ""
        try:
            with self.lab.session(self.target, piece, sequence=True) as run:
                for sample, feed in zip(self.samples, feeds, strict=True):
                    name = sample.name
                    failed, differs = self._look(sample, nodes, run(feed))
                    wrong = wrong or differs
                    if failed is not None:
                        found.append(failed)
                        if self.expected is not None and self._is_same(failed):
                            return failed, wrong
        except EngineError as error:
            return Failure.of(Outcome.of(error), name), False
        if not found:
            return None, wrong
        worst = max(found, key=lambda failure: (failure.influence, failure.error))
        if self.expected is None:
            every = {name: errors for failure in found for name, errors in failure.influences.items()}
            return dataclasses.replace(worst, influences=every), wrong
        return worst, wrong

    def _look(
        self, sample: GoldenSample, nodes: Sequence[str], outputs: Mapping[str, np.ndarray]
    ) -> tuple[Failure | None, bool]:
        """Return the failure of a piece's results on one sample, and whether there is one."""
        if self.pieces.is_whole(nodes):
            return self._at_the_outputs(sample, dict(outputs), {}), False
        wrong: dict[str, np.ndarray] = {}
        errors: dict[str, float] = {}
        for name, array in outputs.items():
            golden = sample[name]
            if array.shape != golden.shape:
                return Failure(FailureKind.SHAPE, name, math.inf, sample=sample.name), False
            metrics = measure(golden, array)
            if metrics.mismatches:
                wrong[name], errors[name] = array, self.judge.error(metrics)
        if not wrong or carries_nothing_on(max(errors.values())):
            return None, False
        value = max(errors, key=lambda name: errors[name])
        if self.expected is not None and self.expected.kind is FailureKind.NON_FINITE and math.isinf(errors[value]):
            return Failure(FailureKind.NON_FINITE, value, math.inf, sample=sample.name), True
        return self._carried(sample, nodes, wrong, errors), True

    def _carried(
        self, sample: GoldenSample, nodes: Sequence[str], wrong: Mapping[str, np.ndarray], errors: Mapping[str, float]
    ) -> Failure | None:
        """Return the failure that wrong values inside the model mean for its outputs."""
        influences = self.expected.influences.get(sample.name, {}) if self.expected is not None else {}
        outputs = whole(list(influences), self._parts(sample)) or [spec.name for spec in self.pieces.model.outputs]
        try:
            with self._lock:
                reached = carry(
                    self.pieces,
                    wrong,
                    outputs,
                    inside=nodes,
                    sample=sample,
                    run=functools.partial(self.lab.session, self.reference, sequence=True),
                )
        except EngineError:  # the reference chokes on these values: they are wrong, however much
            value = max(errors, key=lambda name: errors[name])
            return Failure(FailureKind.WRONG, value, errors[value], sample=sample.name)
        return self._at_the_outputs(sample, reached, errors)

    def _at_the_outputs(
        self, sample: GoldenSample, outputs: Mapping[str, np.ndarray], inside: Mapping[str, float]
    ) -> Failure | None:
        """Judge outputs of the whole model; ``inside`` are the errors in the piece that they come from."""
        pairs: dict[str, Compared] = {}
        for name, array in outputs.items():
            if name not in sample:
                continue
            golden = sample[name]
            if array.shape != golden.shape:
                return Failure(FailureKind.SHAPE, name, math.inf, name, math.inf, sample.name)
            pairs[name] = Compared.of(golden, array)
        for part in self._parts(sample):
            if (both := pairs.get(part.output)) is not None:
                pairs[part.name] = Compared.of(part.of(both.reference), part.of(both.target))
        found = {name: self.judge.error(pair.metrics) for name, pair in pairs.items()}
        failing = {name: found[name] for name in self._failing(sample, pairs, found)}
        if not failing:
            if self.expected is None:
                with self._lock:
                    self.closest = max([self.closest, *((error, name) for name, error in found.items())])
            return None
        output = max(failing, key=lambda name: self._weight(sample, name, failing[name]))
        errors = dict(inside) or failing
        value = max(errors, key=lambda name: errors[name])
        kind = FailureKind.NON_FINITE if pairs[output].metrics.nonfinite_mismatch else FailureKind.WRONG
        every = {sample.name: failing}
        return Failure(kind, value, errors[value], output, failing[output], sample.name, influences=every)

    def _parts(self, sample: GoldenSample) -> Sequence[OutputPart]:
        """Return the parts that outputs are composed of, which are judged as in `run` and `diagnose`."""
        return output_parts(self.pieces.model, sample.feed.tensors) if self.judge.tolerance is None else ()

    def _failing(self, sample: GoldenSample, pairs: Mapping[str, Compared], errors: Mapping[str, float]) -> list[str]:
        if self.expected is None:
            parts = {part.name: pairs[part.name] for part in self._parts(sample) if part.name in pairs}
            with self._lock:
                failing = self.judge.failing({n: pair for n, pair in pairs.items() if n not in parts}, parts)
            return [name for name in pairs if name in failing]
        heavy = [name for name in pairs if self._weight(sample, name, errors[name]) >= SAME_FAILURE]
        return [name for name in heavy if not self.judge.excuses(name, pairs[name])]

    def _weight(self, sample: GoldenSample, output: str, error: float) -> float:
        return error if self.expected is None else self.expected.share(sample.name, output, error)


def _feed(sample: GoldenSample, inputs: Sequence[ValueSpec]) -> dict[str, np.ndarray]:
    missing = [spec.name for spec in inputs if spec.name not in sample]
    if missing:
        raise DataError(
            f"there is no golden value of '{missing[0]}'",
            slug="golden-missing",
            cure="this reference does not show it: choose another --reference",
        )
    return {spec.name: sample[spec.name] for spec in inputs}
