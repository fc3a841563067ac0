"""A self-contained reduced case: a model, inputs, and the expected outputs.

Its failure is decided without the model it was cut from: the same kind of failure, and an error of at least a tenth of
the one seen when it was cut out. Errors are relative to the signal, but not to one that has nearly vanished on the way:
rounding noise over zero would look like any failure.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feeds import load_feeds
from tensortriage.model.io.tensor_pb import read_tensor
from tensortriage.model.model import Model
from tensortriage.reduce.failure import SAME_FAILURE, Failure, FailureKind, essence
from tensortriage.runs.lab import Run
from tensortriage.runs.outcome import Outcome

VANISHED = 1e-3
"""Share of the signal that was there when the case was cut out, below which errors are relative to this share."""

MODEL_NAME = "model.onnx"


@frozen_dataclass
class ReproSample:
    """One set of inputs and the outputs that the reference computed from it."""

    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


@frozen_dataclass
class Repro:
    """A model with samples; targets that keep state between runs get them in this order, in one session."""

    model: Model
    samples: tuple[ReproSample, ...]


def failure_of(repro: Repro, run: Run, *, signal: float = 0.0) -> Failure | None:
    """Return the worst way in which a repro fails; None when its results are all exact.

    Args:
        repro: The case.
        run: Runs its model on the engine that may fail.
        signal: Root mean square of the right value when the case was cut out.
    """
    least = VANISHED * signal
    worst: Failure | None = None
    try:
        for number, sample in enumerate(repro.samples):
            found = _compare(sample, run(sample.inputs), str(number), least)
            if found is not None and (worst is None or found.error > worst.error):
                worst = found
    except EngineError as error:
        return Failure.of(Outcome.of(error))
    return worst


def alike(failure: Failure | None, local: Failure) -> bool:
    """Return whether a repro still fails as it did when it was cut out."""
    if failure is None or failure.kind is not local.kind:
        return False
    if not failure.kind.numeric:
        return essence(failure.message) == essence(local.message)
    return failure.error >= SAME_FAILURE * local.error


def _compare(sample: ReproSample, outputs: Mapping[str, np.ndarray], name: str, least_signal: float) -> Failure | None:
    worst: Failure | None = None
    for output, golden in sample.outputs.items():
        array = outputs[output]
        if array.shape != golden.shape:
            return Failure(FailureKind.SHAPE, output, math.inf, sample=name)
        metrics = measure(golden, array)
        error = error_of(metrics)
        if not (metrics.exact or metrics.nonfinite_mismatch) and metrics.reference_rms < least_signal:
            error = metrics.rms_error / least_signal
        if error > (worst.error if worst else 0.0):
            kind = FailureKind.NON_FINITE if metrics.nonfinite_mismatch else FailureKind.WRONG
            worst = Failure(kind, output, error, sample=name, signal=metrics.reference_rms)
    return worst


def load_repro(folder: Path) -> Repro:
    """Read a repro as `tensortriage.reduce.repro.repro_pack` writes it.

    Raises:
        ModelError: When the model cannot be read.
        DataError: When its test data cannot.
    """
    model = Model.load(folder / MODEL_NAME)
    sets = data_sets(folder)
    inputs = [dict(feed.tensors) for feed in load_feeds(sets, model.inputs)]
    samples = [ReproSample(feed, _outputs(path)) for feed, path in zip(inputs, sets, strict=True)]
    return Repro(model, tuple(samples))


def data_sets(folder: Path) -> Sequence[Path]:
    """Return the test data sets of a repro, in order."""
    found = [path for path in folder.iterdir() if path.name.startswith("test_data_set_")]
    return sorted(found, key=lambda path: int(path.name.rsplit("_", 1)[1]))


def _outputs(folder: Path) -> dict[str, np.ndarray]:
    files = sorted(folder.glob("output_*.pb"), key=lambda path: int(path.stem.rsplit("_", 1)[1]))
    return dict(read_tensor(path) for path in files)
