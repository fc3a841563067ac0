"""A quantizer that does not fit its values: its figures, and the model with it calibrated."""

from collections.abc import Collection, Mapping

import numpy as np

from tensortriage.compare.quantization.quantizer_fit import QuantizerFit, integer_range
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import Quantizer
from tensortriage.model.transforms.mark_outputs import freeze

CUT_BY_CALIBRATION = 0.005
"""Largest share of the numbers that calibrators cut off: NNCF's mean of the largest numbers of its samples cut off
0.15 % of a detector's on others, percentiles of 99.9 0.1 %."""
CUT_OF_SAMPLE = 2
"""Most numbers of a sample that these cut off, where that is more: one at each end, beyond the mean of what is there in
others. Of 16 means in a mobile network NNCF's range cuts off 1 of each sample."""
HELD = 2 / 3
"""Smallest share of the observed range that these hold: NNCF's of that detector were 0.8 and 0.84, of
those means 0.67."""


@frozen_dataclass
class QuantizerMisfit:
    """A quantizer that does not fit its values, given in samples of so many numbers; see `QuantizerFit`."""

    pair: Quantizer
    fit: QuantizerFit
    weight: np.ndarray | None
    size: int

    @property
    def cuts_outliers(self) -> bool:
        """Whether it cuts off no more than calibration does that takes no extremes, so that it is no mistake."""
        held = max(map(abs, self.fit.representable)) >= HELD * max(map(abs, self.fit.observed))
        few = self.fit.clipped <= max(CUT_BY_CALIBRATION, CUT_OF_SAMPLE / self.size)
        return not self.pair.of_weight and self.fit.kind == "scale-too-small" and few and held


def repaired(changed: Model, misfits: Collection[QuantizerMisfit]) -> Model:
    """Return the model with quantizers calibrated on the numbers they were judged by."""
    values: dict[str, np.ndarray] = {}
    for misfit in misfits:
        pair, fit = misfit.pair, misfit.fit
        values[pair.scale] = fit.scale
        if pair.zero_point:
            values[pair.zero_point] = fit.zero_point
        if misfit.weight is not None:
            values[pair.stored] = stored(misfit.weight, fit, pair)
    return freeze(changed, values)


def stored(weight: np.ndarray, fit: QuantizerFit, pair: Quantizer) -> np.ndarray:
    """Return a weight in integers, by ONNX's definition of QuantizeLinear."""
    shape = [1] * weight.ndim
    if fit.scale.size > 1:
        shape[pair.axis % weight.ndim] = -1
    scale, zero = (np.asarray(x, np.float64).reshape(shape) for x in (fit.scale, fit.zero_point))
    whole = np.clip(np.rint(weight / scale) + zero, *integer_range(pair.dtype))
    return np.asarray(whole.astype(pair.dtype.numpy))


def facts(fit: QuantizerFit) -> Mapping[str, object]:
    """Return the figures behind a judgement."""
    return {
        "kind": fit.kind,
        "error": fit.error,
        "best_error": fit.best_error,
        "gap_db": fit.gap_db,
        "clipped": fit.clipped,
        "clipping_share_of_error": fit.clipping,
        "observed": fit.observed,
        "representable": fit.representable,
    }
